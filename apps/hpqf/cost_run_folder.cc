#include "apps/hpqf/cost_run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "apps/hpqf/plan_files.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/base/json.h"
#include "hpqf/observe/audit_workload.h"

namespace hpqf::app {
namespace {

namespace fs = std::filesystem;

std::string text_of(const base::JsonObject& object, const char* key) { return object.has(key) ? object.text(key) : ""; }

// What hpqf train wrote; a run of the library has no such file.
void read_config(CostRun& run, const std::string& file) {
  const base::Json json = base::parse_json(base::read_file(file), file);
  const base::JsonObject config(json, file);
  run.model = text_of(config, "model");
  run.precision = text_of(config, "plan").empty() ? text_of(config, "precision") : text_of(config, "plan");
  if (!config.has("batch-size")) return;
  const int64_t accumulate = config.has("accumulate") ? config.integer("accumulate", 1) : 1;
  run.usual_samples = static_cast<double>(config.integer("batch-size", 0) * accumulate);
}

}  // namespace

CostRun read_cost_run(const std::string& folder) {
  const auto file = [&](const char* name) { return (fs::path(folder) / name).string(); };
  if (!fs::exists(file("metrics.jsonl")))
    throw Error(fmt::format("the cost of '{}'", folder), "a run folder: one with a metrics.jsonl",
                "name the folder that hpqf train --out wrote");
  CostRun run;
  run.folder = folder;
  if (fs::exists(file("config.json"))) read_config(run, file("config.json"));
  run.log = cost::read_run_log(base::read_file(file("metrics.jsonl")), file("metrics.jsonl"), run.usual_samples);
  if (fs::exists(file("plan.json"))) {
    PlanFile plan = read_plan(folder);
    run.plan = std::move(plan.plan);
    run.facts = std::move(plan.facts);
  }
  if (fs::exists(file("audit.json")))
    run.audit = observe::AuditReport::from_json(base::read_file(file("audit.json")), file("audit.json"));
  return run;
}

cost::Workload CostRun::workload() const {
  if (!audit)
    throw Error(fmt::format("the work of {}, which has no audit.json", folder), "a run that came to its end",
                "let the run end or resume it, or name a model instead");
  // Checkpoints of older versions held no audit: that of a resumed run then covers its last steps only.
  const auto& samples = log.samples_by_step;
  const size_t steps = std::min<size_t>(samples.size(), static_cast<size_t>(audit->steps));
  const double seen = std::accumulate(samples.end() - static_cast<std::ptrdiff_t>(steps), samples.end(), 0.0);
  return observe::workload_of(*audit, facts, seen);
}

double CostRun::samples_per_second() const { return log.wall_seconds > 0 ? log.samples / log.wall_seconds : 0; }

}  // namespace hpqf::app
