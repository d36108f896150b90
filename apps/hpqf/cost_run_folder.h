// A run folder as the cost models see it.
#pragma once
#include <optional>
#include <string>

#include "hpqf/cost/run_log.h"
#include "hpqf/cost/workload.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/plan.h"

namespace hpqf::app {

struct CostRun {
  std::string folder;
  cost::RunLog log;
  std::string model, precision;  // of config.json; "" without one
  double usual_samples = 0;      // batch size times accumulation, 0 without a config.json
  PrecisionPlan plan;
  plan::ModelFacts facts;
  std::optional<observe::AuditReport> audit;  // a killed run has none

  // Error when there is no audit.
  cost::Workload workload() const;
  double samples_per_second() const;  // over its wall time; 0 when that is unknown
};

// Error when the folder has no metrics.jsonl or one of its files is damaged.
CostRun read_cost_run(const std::string& folder);

}  // namespace hpqf::app
