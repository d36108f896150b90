// One training run of the command line, from a complete configuration.
#pragma once
#include "apps/hpqf/train_config.h"

namespace hpqf::app {

// `plan_given`: the user asked for a precision in this call. A resumed run without keeps the plan it was started with,
// even where "auto" would now choose another or the plan file has changed.
int run_training(const TrainConfig& config, bool plan_given);

}  // namespace hpqf::app
