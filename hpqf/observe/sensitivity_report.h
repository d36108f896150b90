// A sensitivity for people: tables and a picture.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::observe {

// One row a layer and operand, one column a format: the score in nats, most sensitive layers first by their largest
// finite score. max_rows 0: all.
HPQF_API std::string sensitivity_table(const plan::Sensitivity& sensitivity, int max_rows = 0);

// Layers in definition order with the columns of the Hessian; "" when none was measured.
HPQF_API std::string hessian_table(const plan::Sensitivity& sensitivity);

// An SVG document: a field for each layer, operand and format, darker the higher the score (logarithmic), with the
// number in it.
HPQF_API std::string sensitivity_picture(const plan::Sensitivity& sensitivity);

}  // namespace hpqf::observe
