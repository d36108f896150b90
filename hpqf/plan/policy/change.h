// One change a policy makes to a plan, as it is logged.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/operand.h"

namespace hpqf::plan {

struct PolicyChange {
  std::string layer;
  Operand operand = Operand::weight;
  std::string from, to;                   // block formats
  std::string cause;                      // one word for machines: "saturation", "calm", "schedule", ...
  std::map<std::string, double> numbers;  // what was seen and what is allowed
  std::string reason;                     // for people
  bool operator==(const PolicyChange&) const = default;
};

// A new plan with the changes: one rule "=LAYER" for each layer, epoch + 1 for each. Error when `from` is not what the
// plan says, so that a change is never applied to another plan than it was made for.
HPQF_API PrecisionPlan apply_changes(const PrecisionPlan& plan, const std::vector<PolicyChange>& changes);

// What turns `from` into `to` on the layers of `model`, in the form of changes with one cause.
HPQF_API std::vector<PolicyChange> changes_between(const PrecisionPlan& from, const PrecisionPlan& to,
                                                   const ModelFacts& model, const std::string& cause);

HPQF_API std::string to_string(const PolicyChange& change);  // "conv1: weight int4 -> int8, ..."

}  // namespace hpqf::plan
