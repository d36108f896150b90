// Range compensation where casts happen: the range of an unscaled format is laid over the values of one layer and role.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "hpqf/kernels/quantize.h"
#include "hpqf/plan/range.h"

namespace hpqf::engine {

struct RuntimeState;

// One layer's casts of one role. The exponent is set between steps, by a policy (plan/range.h); everything else is
// counted by the casts of a step and taken at its end. Casts of one layer may run on several threads.
struct RangeSite {
  static constexpr int kUnknown = std::numeric_limits<int>::min();  // no cast yet: the first one takes its own range
  std::atomic<int> exponent{kUnknown};
  std::atomic<int32_t> amax_bits{0};  // largest finite magnitude, as bits of a non-negative float
  std::atomic<int64_t> elements{0};   // cast
  std::atomic<int64_t> clipped{0};    // finite before, infinite or clipped after, and nothing could be done
  std::atomic<int64_t> recasts{0};    // casts done again with the range of their own values
};

// The three roles that are cast: input, weight, output_grad.
class RangeSites {
 public:
  static constexpr std::array kRoles = {plan::Role::input, plan::Role::weight, plan::Role::output_grad};
  RangeSite& at(plan::Role role) {
    return sites_[role == plan::Role::weight ? 1 : role == plan::Role::output_grad ? 2 : 0];
  }

 private:
  std::array<RangeSite, 3> sites_;
};

// Whether the range of a format can be moved, and moving it can matter: fp16, and fp8 without scale. Scaled formats
// follow their values by themselves; bf16 and tf32 reach as far as fp32.
bool range_moves(const BlockFormat& format);

// quantize_dequantize with the site's exponent. The first cast of a site is done with the range of its own values.
// Where finite values do not fit, the cast is done again at once with the range they need: no step is lost to a jump.
// With `note` the site hears what happened; without, the cast leaves no trace. Stochastic rounding is not offered: no
// unscaled format uses it here.
kernels::RoundStats round_in_range(const float* in, float* out, const kernels::BlockLayout& layout,
                                   const BlockFormat& format, RangeSite& site, bool note);

// What the sites counted since the last call. Between steps only.
std::vector<plan::RangeObservation> take_ranges(RuntimeState& state);
// Lays the range of every site of the state; sites it does not name stay as they are.
void set_ranges(RuntimeState& state, const plan::RangeState& ranges);

}  // namespace hpqf::engine
