#include "hpqf/observe/human.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace hpqf::observe {
namespace {

std::string three_digits(double x) {
  if (x >= 99.95) return fmt::format("{:.0f}", x);
  return x >= 9.995 ? fmt::format("{:.1f}", x) : fmt::format("{:.2f}", x);
}

// `units[0]` counts single things and is printed whole.
std::string scaled(double x, double step, std::span<const char* const> units, const char* suffix) {
  size_t unit = 0;
  for (; unit + 1 < units.size() && x >= step * (1 - 0.5e-3); ++unit) x /= step;  // 999.6 k is 1.00 M
  std::string text = unit == 0 ? fmt::format("{:.0f}", x) : three_digits(x);
  const std::string symbol = std::string(units[unit]) + suffix;
  return symbol.empty() ? text : text + " " + symbol;
}

constexpr const char* kDecimal[] = {"", "k", "M", "G", "T", "P", "E"};
constexpr const char* kBinary[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

}  // namespace

std::string human_flops(double flops) { return scaled(flops, 1000, kDecimal, "FLOP"); }
std::string human_bytes(double bytes) { return scaled(bytes, 1024, kBinary, ""); }
std::string human_count(double count) { return scaled(count, 1000, kDecimal, ""); }

std::string human_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string percent(double share) {
  if (share == 0) return "0";
  return share < 0.0005 ? "<0.1" : fmt::format("{:.1f}", share * 100);
}

}  // namespace hpqf::observe
