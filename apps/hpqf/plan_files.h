// Plans and models as the command line names them.
#pragma once
#include <string>

#include "hpqf/plan/plan.h"

namespace hpqf::app {

struct PlanFile {
  PrecisionPlan plan;
  plan::ModelFacts facts;  // empty when the file has no table of layers
};

// `path` is a plan file or a folder with a plan.json. Error when it is neither.
PlanFile read_plan(const std::string& path);

// The layers of a reference model. Error with the list of names.
plan::ModelFacts facts_of(const std::string& model);

}  // namespace hpqf::app
