#include "hpqf/device/achievable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpqf/device/numbers.h"

namespace hpqf::device {
namespace {

// The sets of relatives a device belongs to, nearest first: a key, and its name for people.
std::vector<std::pair<std::string, std::string>> relatives(const DeviceFacts& device, std::string_view peak_name) {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string vendor = device.vendor();
  if (const auto architecture = device.text("identity.architecture"); architecture && !vendor.empty()) {
    const std::string key = vendor + "/" + *architecture;
    out.emplace_back(key + "/" + std::string(peak_name),
                     fmt::format("architecture {} in {}", *architecture, peak_name));
    out.emplace_back(key, fmt::format("architecture {}", *architecture));
  }
  if (!vendor.empty()) {
    out.emplace_back(vendor + "//" + std::string(peak_name), fmt::format("{} in {}", vendor, peak_name));
    out.emplace_back(vendor + "//", vendor);
  }
  return out;
}

}  // namespace

AchievableFactors::AchievableFactors(const std::vector<DeviceFacts>& devices) {
  for (const DeviceFacts& device : devices) {
    for (const PeakField& field : peak_fields()) {
      const auto best = device.number(fmt::format("calibrated.best.{}", field.name));
      const auto peak = device.number(peak_key(field.name));
      if (!field.matrix || !best || !peak || *peak <= 0 || *best <= 0) continue;
      for (const auto& set : relatives(device, field.name)) by_relatives_[set.first].push_back(*best / *peak);
    }
  }
  for (auto& entry : by_relatives_) std::sort(entry.second.begin(), entry.second.end());
}

AchievableFactor AchievableFactors::factor(const DeviceFacts& device, std::string_view peak_name) const {
  for (const auto& [key, title] : relatives(device, peak_name)) {
    const auto it = by_relatives_.find(key);
    if (it == by_relatives_.end()) continue;
    const std::vector<double>& ratios = it->second;
    const size_t half = ratios.size() / 2;
    const double median = ratios.size() % 2 ? ratios[half] : (ratios[half - 1] + ratios[half]) / 2;
    return {median,
            fmt::format("median of {} measured figure{} of {}", ratios.size(), ratios.size() == 1 ? "" : "s", title)};
  }
  return {kDefault, "no relative of this device was measured: a cautious default, low confidence"};
}

}  // namespace hpqf::device
