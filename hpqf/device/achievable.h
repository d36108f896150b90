// How much of a quoted peak a matrix product reaches, learnt from the devices that somebody has measured.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/facts.h"

namespace hpqf::device {

struct AchievableFactor {
  double value = 0;   // measured / quoted
  std::string basis;  // "median of 3 measured devices of architecture Hopper"
};

class HPQF_API AchievableFactors {
 public:
  // Without measured devices every factor is the default.
  AchievableFactors() = default;
  explicit AchievableFactors(const std::vector<DeviceFacts>& devices);

  // The median over the nearest relatives that were measured: the same architecture and format, the same architecture,
  // the same vendor and format, the same vendor. 0.6 with no relative: the low end of what has been measured on any
  // accelerator (0.51 to 0.97), so that an unmeasured device is not preferred for its sheet.
  AchievableFactor factor(const DeviceFacts& device, std::string_view peak_name) const;

  static constexpr double kDefault = 0.6;

 private:
  std::map<std::string, std::vector<double>> by_relatives_;
};

}  // namespace hpqf::device
