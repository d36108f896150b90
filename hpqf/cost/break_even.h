// Does a change of precision pay? What it saves against what it costs to make it.
#pragma once
#include <optional>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/cost/figure.h"

namespace hpqf::cost {

// What the change costs once.
struct Conversion {
  double hours = 40;                // of a person's work
  double wage = 100;                // an hour, in the currency of the price
  double profiling_gpu_hours = 0;   // to find the plan
  double validation_gpu_hours = 0;  // to show that quality holds, e.g. one more training
  double rerun_risk = 0;            // probability that a whole run has to be repeated in the old precision, 0 to 1
};
HPQF_API double one_off(const Conversion& conversion, double price);

// Hours of the old precision that have to be trained until the change has paid for itself; nothing: never.
//
//   saved for each old GPU-hour  s = p (1 - 1/r - risk)   r: old time over new, p: price of a GPU-hour
//   break-even                   H = one_off / s
//
// With probability `risk` the new run is lost and the old one has to be paid as well.
HPQF_API std::optional<double> break_even(const Conversion& conversion, double ratio, double price);

// A band of it: the middle of both; the favourable end takes the highest ratio, the unfavourable one the lowest, each
// with the price that is best or worst for it. An end without a break-even is "never".
struct BreakEven {
  std::optional<double> best, mid, worst;
};
HPQF_API BreakEven break_even(const Conversion& conversion, const Band& ratio, const Band& price);
HPQF_API std::string to_string(const BreakEven& result);  // "1.2 k device-hours (800 to 2.4 k)", "never (4 k at best)"

// The ratio of two modelled times whose relative errors are e and f: r (1 - e) / (1 + f) to r (1 + e) / (1 - f) would
// be independent extremes; errors of one model go the same way mostly, so half of their sum is taken.
HPQF_API Band ratio_band(double ratio, double error_a, double error_b);

}  // namespace hpqf::cost
