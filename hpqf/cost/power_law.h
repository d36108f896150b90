// The fit under a projection. Internal to this room.
#pragma once
#include <span>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/projection.h"

namespace hpqf::cost {

struct CurveBin {
  double step = 0, value = 0;  // medians
  double weight = 1;           // grows with the number of points
};

// Sorted by step. NaN and infinite points are left out, and all below the last step / 100.
HPQF_API std::vector<CurveBin> bins(std::span<const CurvePoint> points, size_t most);

// Least Huber loss over a, b and c; b is 0 when the curve does not fall.
HPQF_API PowerLaw fit_power_law(std::span<const CurveBin> bins);

}  // namespace hpqf::cost
