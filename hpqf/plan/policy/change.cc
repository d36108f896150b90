#include "hpqf/plan/policy/change.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"

namespace hpqf::plan {

PrecisionPlan apply_changes(const PrecisionPlan& plan, const std::vector<PolicyChange>& changes) {
  PrecisionPlan next = plan;
  std::vector<std::string> done;
  for (const PolicyChange& first : changes) {
    if (std::find(done.begin(), done.end(), first.layer) != done.end()) continue;
    done.push_back(first.layer);
    LayerPrecision precision = next.at(first.layer);
    for (const PolicyChange& change : changes) {
      if (change.layer != first.layer) continue;
      BlockFormat& format = format_of(precision, change.operand);
      if (formats::to_string(format) != change.from)
        throw Error(fmt::format("{} where the plan says {}", to_string(change), formats::to_string(format)),
                    "a change made for this plan", "decide again from the plan as it is now");
      format = formats::parse_block_format(change.to);
      precision.reason = change.reason;
    }
    next = next.with_rule({"=" + first.layer, precision});
  }
  return next;
}

std::vector<PolicyChange> changes_between(const PrecisionPlan& from, const PrecisionPlan& to, const ModelFacts& model,
                                          const std::string& cause) {
  std::vector<PolicyChange> changes;
  for (const LayerFacts& layer : model.layers) {
    const LayerPrecision a = from.at(layer.name, layer.kind), b = to.at(layer.name, layer.kind);
    for (Operand operand : kOperands)
      if (!(format_of(a, operand) == format_of(b, operand)))
        changes.push_back({layer.name,
                           operand,
                           formats::to_string(format_of(a, operand)),
                           formats::to_string(format_of(b, operand)),
                           cause,
                           {},
                           b.reason});
  }
  return changes;
}

std::string to_string(const PolicyChange& change) {
  std::string text = fmt::format("{}: {} {} -> {}", change.layer.empty() ? "(model)" : change.layer,
                                 name(change.operand), change.from, change.to);
  if (!change.reason.empty()) text += ", " + change.reason;
  return text;
}

}  // namespace hpqf::plan
