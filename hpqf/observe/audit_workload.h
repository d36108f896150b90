// A run's audit as a workload: what its model really computed, for the cost models.
#pragma once
#include "hpqf/base/export.h"
#include "hpqf/cost/workload.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/role.h"

namespace hpqf::observe {

// Per sample, from the FLOPs of the audit's products; `samples` are those of all its steps together. An audit has no
// shapes: operands count as no bytes, which the workload's assumptions say. Parameters and kinds of layers come from
// `facts` (may be empty). Error when the audit covers no steps, holds no product, or `samples` is not above 0.
HPQF_API cost::Workload workload_of(const AuditReport& audit, const plan::ModelFacts& facts, double samples);

// The share of the products' FLOPs that ran emulated, 0 to 1.
HPQF_API double emulated_share(const AuditReport& audit);

}  // namespace hpqf::observe
