// Range compensation: a power-of-two scale for each layer and role that follows the largest value seen, so that a
// narrow format neither overflows nor flushes. Pure; who casts calls it.
//   cast(x * 2^e) * 2^-e   with   e = floor(log2(largest / max(window))) - margin
// `largest` is the largest finite value of the format. A margin of m binades absorbs growth by 2^m from one step to the
// next; the maximum of the last 16 steps recovers from any jump in one step, because the absolute maximum is taken in
// fp32 before the cast and recorded even when the step is skipped.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/operand.h"

namespace hpqf::plan {

struct RangeOptions {
  int window = 16;      // absolute maxima kept
  int margin = 2;       // binades of headroom
  int most = 120;       // |exponent| never above: 2^e and 2^-e stay normal fp32 numbers
  bool recast = true;   // cast again at once with the tensor's own exponent when the one from the window overflows
  bool enabled = true;  // false: exponent 0 always, maxima are still recorded
  bool operator==(const RangeOptions&) const = default;
};

struct RangeTrack {           // of one layer and role; equality is exact
  std::vector<float> window;  // finite absolute maxima, oldest first
  int exponent = 0;           // for the next cast
  int64_t casts = 0;          // recorded
  int64_t clipped = 0;        // casts whose amax exceeded the format at the exponent that was used
  int64_t recasts = 0;        // of these, cast again in the step
  int64_t nonfinite = 0;      // casts whose source held NaN or infinity: they never enter the window
  bool operator==(const RangeTrack&) const = default;
};
struct RangeState {  // goes into checkpoints
  std::map<std::pair<std::string, Operand>, RangeTrack> tracks;
  bool operator==(const RangeState&) const = default;
};

// The exponent for tensors whose absolute maximum is `amax`, without margin when `margin` is 0. 0 for an amax of zero
// or one that is not finite. Works for subnormal amax. Error for a format with a scale of its own (integers need none).
HPQF_API int range_exponent(Format format, float amax, int margin, const RangeOptions& options = {});

// Does a finite amax exceed the format's largest value at this exponent?
HPQF_API bool clips(Format format, float amax, int exponent);

// One cast, when its source's amax is known (fp32, before the cast; NaN or infinity when the source is not finite).
struct RangeCast {
  RangeTrack track;      // the state after it
  int exponent = 0;      // to cast with: the track's own, or that of the tensor
  bool recast = false;   // the track's exponent would have clipped
  bool clipped = false;  // it clips all the same (recast switched off)
  std::string reason;    // "" when the next exponent stays
};
// The first tensor of a track is cast with the exponent of its own amax.
HPQF_API RangeCast range_cast(const RangeTrack& track, Format format, float amax, const RangeOptions& options = {});

HPQF_API void check(const RangeOptions& options);

// Round trip is exact, bit for bit.
HPQF_API std::string to_json(const RangeState& state);
HPQF_API RangeState range_state_from_json(std::string_view text, std::string_view where = "range state");

}  // namespace hpqf::plan
