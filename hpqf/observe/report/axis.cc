#include "hpqf/observe/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hpqf::observe {

std::string short_number(double value) {
  const double size = std::fabs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-3)) return fmt::format("{:.2g}", value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

Axis::Axis(double low, double high, bool logarithmic, bool padded)
    : low_(logarithmic ? std::log10(low) : low),
      high_(logarithmic ? std::log10(high) : high),
      logarithmic_(logarithmic) {
  if (!(high_ > low_)) {
    const double half = logarithmic ? 0.5 : std::max(0.5 * std::fabs(low_), 0.5);
    low_ -= half;
    high_ += half;
  } else if (padded) {
    const double pad = 0.04 * (high_ - low_);
    // A quantity that does not fall below zero is not shown as if it could.
    low_ = !logarithmic && low_ >= 0 ? std::max(0.0, low_ - pad) : low_ - pad;
    high_ += pad;
  }
}

double Axis::at(double value) const {
  const double x = logarithmic_ ? (value > 0 ? std::log10(value) : low_) : value;
  return std::clamp((x - low_) / (high_ - low_), 0.0, 1.0);
}

std::vector<Tick> Axis::ticks(int most) const {
  std::vector<Tick> out;
  const double range = high_ - low_;
  if (logarithmic_ && range >= 0.9) {
    // Powers of ten, thinned to fit; between few of them also 2 and 5.
    const int first = static_cast<int>(std::ceil(low_ - 1e-9)), last = static_cast<int>(std::floor(high_ + 1e-9));
    const int stride =
        std::max(1, (last - first) / std::max(1, most - 1) + ((last - first) % std::max(1, most - 1) > 0));
    for (int power = first - 1; power <= last; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit != 1 && (last - first > 1 || range > 2)) continue;
        if (digit == 1 && (power - first) % stride != 0) continue;
        const double x = power + std::log10(digit);
        if (x >= low_ - 1e-9 && x <= high_ + 1e-9)
          out.push_back({(x - low_) / range, short_number(digit * std::pow(10, power))});
      }
    }
    return out;
  }
  // 1, 2 or 5 times a power of ten apart (Heckbert, "Nice Numbers for Graph Labels", Graphics Gems, 1990).
  const double low = logarithmic_ ? std::pow(10, low_) : low_, high = logarithmic_ ? std::pow(10, high_) : high_;
  const double raw = (high - low) / std::max(1, most - 1), power = std::pow(10, std::floor(std::log10(raw)));
  const double step = raw / power > 5 ? 10 * power : raw / power > 2 ? 5 * power : raw / power > 1 ? 2 * power : power;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    out.push_back({at(k * step), short_number(k == 0 ? 0 : k * step)});
  return out;
}

}  // namespace hpqf::observe
