#include "apps/hpqf/plan_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/engine/runtime.h"
#include "models/registry.h"

namespace hpqf::app {

PlanFile read_plan(const std::string& path) {
  namespace fs = std::filesystem;
  std::string file = path;
  if (fs::is_directory(path)) {
    file = (fs::path(path) / "plan.json").string();
    if (!fs::exists(file)) {
      throw Error(fmt::format("folder '{}'", path), "a run folder: one with a plan.json",
                  "name the folder that hpqf train --out wrote, or a plan file");
    }
  }
  const std::string text = base::read_file(file);
  return {PrecisionPlan::from_json(text, file), plan::model_facts_from_json(text)};
}

plan::ModelFacts facts_of(const std::string& model) {
  return engine::describe(*models::find_model(model).make({}).module).facts;
}

}  // namespace hpqf::app
