// Allocation again while training goes on: from averaged scores, and only when the change pays.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/allocate/allocate.h"
#include "hpqf/plan/policy/change.h"

namespace hpqf::plan {

// Exponential average: decay * old + (1 - decay) * fresh for each score, with the standard error of that sum. Columns
// that only one of the two has come from it. An infinite fresh score stays infinite; an infinite old one is forgotten.
// Error when the layers differ.
HPQF_API Sensitivity average(const Sensitivity& old, const Sensitivity& fresh, double decay);

struct SwitchingCost {  // what a change costs, in nats of predicted loss
  double change = 0;    // once: the optimizer has to adapt
  double layer = 0;     // for each layer that changes
  bool operator==(const SwitchingCost&) const = default;
};

struct Reallocation {
  PrecisionPlan plan;                 // the same, and no changes, when it does not pay
  std::vector<PolicyChange> changes;  // cause "reallocation"
  double gain = 0;                    // predicted loss now minus that of the new allocation, nats; infinity when the
                                      // plan breaks the budget or has formats outside the menu
  double cost = 0;                    // of switching
  std::string reason;
};

// Formats of operands that the budget does not decide (gradients, say) stay as the plan has them.
HPQF_API Reallocation reallocate(const PrecisionPlan& plan, const Sensitivity& scores, const Budget& budget,
                                 const AllocationOptions& options, const SwitchingCost& switching);

}  // namespace hpqf::plan
