// The plan behind --precision auto, as far as speed alone decides.
#pragma once
#include "hpqf/base/export.h"
#include "hpqf/plan/plan.h"

namespace hpqf::engine {

// The fastest format that runs natively on this CPU and was measured faster than fp32; never an emulated or slower one.
// The reasons say what was refused. Layers in `sensitive` stay fp32.
HPQF_API PrecisionPlan auto_plan(const plan::ModelFacts& model, const std::vector<std::string>& sensitive = {});

}  // namespace hpqf::engine
