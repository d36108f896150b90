// A plan, and what became of it, as text for people.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/plan.h"

namespace hpqf::observe {

// Without an audit: the formats and the reason that each layer resolves to; without layers in `model`, the rules.
// With one: for each layer, op and role what was requested, what was effective, the implementation, the share of FLOPs
// and of time, and why. Layers come in definition order, then those that only the audit knows. Containers without
// parameters (functional ops in them take their name) appear only when something ran in them.
HPQF_API std::string explain(const plan::PrecisionPlan& plan, const plan::ModelFacts& model,
                             const AuditReport* audit = nullptr);

}  // namespace hpqf::observe
