// Scales of charts: which values go on an axis, and how they are written.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

struct Tick {
  double position = 0;  // 0 at the low end of the axis, 1 at the high end
  std::string label;
};

class HPQF_API Axis {
 public:
  // Covers `low` to `high` (finite, low <= high; equal ones are widened) and a little more. `logarithmic` needs low >
  // 0.
  Axis(double low, double high, bool logarithmic, bool padded);
  double at(double value) const;  // position, clipped to 0 .. 1
  std::vector<Tick> ticks(int most) const;
  bool logarithmic() const { return logarithmic_; }

 private:
  double low_, high_;  // logarithms when logarithmic_
  bool logarithmic_;
};

HPQF_API std::string short_number(double value);  // "0.05", "12k", "1.5M", "6e-05"

}  // namespace hpqf::observe
