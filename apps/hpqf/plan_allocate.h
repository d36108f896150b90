// hpqf plan allocate: from a sensitivity record and a budget to a plan file.
#pragma once
#include "apps/hpqf/commands.h"

namespace hpqf::app {

void add_plan_allocate(CLI::App& plan, Action& action);

}  // namespace hpqf::app
