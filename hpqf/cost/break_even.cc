#include "hpqf/cost/break_even.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"

namespace hpqf::cost {
namespace {

void check(const Conversion& c) {
  const bool amounts = c.hours >= 0 && c.wage >= 0 && c.profiling_gpu_hours >= 0 && c.validation_gpu_hours >= 0;
  if (!amounts || !(c.rerun_risk >= 0 && c.rerun_risk <= 1))
    throw Error(fmt::format("a conversion of {} hours at {}, {} and {} device-hours, risk {}", c.hours, c.wage,
                            c.profiling_gpu_hours, c.validation_gpu_hours, c.rerun_risk),
                "numbers from 0, the risk from 0 to 1", "correct the cost of the conversion");
}

std::string short_number(double x) {
  if (x >= 1e6) return fmt::format("{:.3g} M", x / 1e6);
  if (x >= 1e3) return fmt::format("{:.3g} k", x / 1e3);
  return fmt::format("{:.3g}", x);
}

}  // namespace

double one_off(const Conversion& c, double price) {
  check(c);
  return c.hours * c.wage + (c.profiling_gpu_hours + c.validation_gpu_hours) * price;
}

std::optional<double> break_even(const Conversion& c, double ratio, double price) {
  if (!(ratio > 0) || !(price > 0))
    throw Error(fmt::format("a break-even at ratio {} and price {}", ratio, price), "both above 0", "correct them");
  // What the new precision costs for an hour of the old: 1/r; with the risk, the old hour again.
  const double saved = price * (1 - 1 / ratio - c.rerun_risk);
  const double once = one_off(c, price);
  if (!(saved > 0)) return std::nullopt;
  return once / saved;
}

BreakEven break_even(const Conversion& c, const Band& ratio, const Band& price) {
  const auto least = [&](double r) {
    const auto a = break_even(c, r, price.low), b = break_even(c, r, price.high);
    return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
  };
  const auto most = [&](double r) -> std::optional<double> {
    const auto a = break_even(c, r, price.low), b = break_even(c, r, price.high);
    if (!a || !b) return std::nullopt;
    return std::max(*a, *b);
  };
  return {least(ratio.high), break_even(c, ratio.mid, price.mid), most(ratio.low)};
}

std::string to_string(const BreakEven& b) {
  if (!b.best) return "never";
  if (!b.mid) return fmt::format("never ({} device-hours at best)", short_number(*b.best));
  const std::string worst = b.worst ? short_number(*b.worst) : "never";
  if (b.worst && *b.worst == *b.best) return fmt::format("{} device-hours", short_number(*b.mid));
  return fmt::format("{} device-hours ({} to {})", short_number(*b.mid), short_number(*b.best), worst);
}

Band ratio_band(double ratio, double error_a, double error_b) {
  const double half = (error_a + error_b) / 2;
  return {ratio * (1 - half), ratio, ratio * (1 + half)};
}

}  // namespace hpqf::cost
