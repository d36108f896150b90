// The simple form of allocation: layers above a threshold take the high format, the others the low one.
#pragma once
#include <map>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::plan {

struct ThresholdOptions {
  // What a layer is compared by. "score": the predicted loss of weight and input in the low format, nats. "eigenvalue",
  // "trace": of the Hessian. "omega": of the weight in the low format.
  std::string measure = "score";
  // Divide by the largest over the layers, so that the threshold is a share of the most sensitive layer. Eigenvalues
  // and traces have no scale of their own; scores do.
  bool relative = true;
  std::string low = "int4", high = "fp16";
};

// Layer to its measure. Error when a layer lacks it.
HPQF_API std::map<std::string, double> sensitivity_map(const Sensitivity& sensitivity,
                                                       const ThresholdOptions& options = {});

// Weight and input of a layer whose measure exceeds `threshold` take `high`, of the others `low`; gradients stay fp32.
HPQF_API PrecisionPlan allocate_precision(const Sensitivity& sensitivity, double threshold,
                                          const ThresholdOptions& options = {});

}  // namespace hpqf::plan
