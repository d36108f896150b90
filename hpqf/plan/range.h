// Range compensation: where the range of a format without scale lies, for each layer and role. Every cast of x becomes
// round(x * 2^e) * 2^-e with an exponent e that follows the largest magnitudes seen: the maximum of the last 16, with a
// margin of two binades. A margin of m binades absorbs growth of 2^m a step; a window that ends in a maximum (and not
// in a mean) is right again one step after any jump.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"
#include "hpqf/plan/role.h"

namespace hpqf::plan {

struct RangeRules {
  bool enabled = false;
  int window = 16;  // steps
  int margin = 2;   // binades left above the largest magnitude of the window
};

// Exponents stay between -80 and 80, which keeps every constant of the rounding loops a normal fp32 number.
inline constexpr int kMostExponent = 80;

// The largest e with amax * 2^e <= largest finite value * 2^-margin. 0 when amax is 0 (nothing to go by) or not finite,
// and for formats that reach as far as fp32.
HPQF_API int range_exponent(Format format, float amax, int margin = 2);

// What the casts of one layer and role came to in one step, taken before the cast: a step that is skipped counts too.
struct RangeObservation {
  std::string layer;
  Role role = Role::input;
  Format format = Format::fp16;
  float amax = 0;  // largest finite magnitude
  int64_t elements = 0, clipped = 0, recasts = 0;
  int exponent = 0;  // in force at the end of the step
};

struct RangeSiteState {
  std::deque<float> window;  // the last amax values, oldest first; zeros are not kept: they say nothing about a range
  int exponent = 0;
  int64_t clipped = 0, recasts = 0;  // since the run began
  bool operator==(const RangeSiteState&) const = default;
};

struct RangeState {  // goes into checkpoints
  std::map<std::pair<std::string, Role>, RangeSiteState> sites;
  bool operator==(const RangeState&) const = default;
};

// Pure: the state after a step. A site whose format changed starts its exponent anew from the same window.
HPQF_API RangeState follow_ranges(RangeState state, const std::vector<RangeObservation>& step, const RangeRules& rules);

HPQF_API void check(const RangeRules& rules);  // Error: a window of none, a margin out of 0 to 16

// Round trip is exact. Error with the place on anything else than such a record.
HPQF_API std::string to_json(const RangeState& state);
HPQF_API RangeState range_state_from_json(std::string_view text, std::string_view where = "range state");

}  // namespace hpqf::plan
