// The Pareto front of an allocation as a picture.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/allocate/allocate.h"

namespace hpqf::observe {

// SVG: predicted loss (nats, logarithmic where all points but zeros allow it) over the cost of the front, with the
// candidates as named marks. Error without a front.
HPQF_API std::string front_picture(const plan::Allocation& allocation);
HPQF_API std::string front_page(const plan::Allocation& allocation);  // the same in an HTML page

}  // namespace hpqf::observe
