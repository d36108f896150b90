// A run folder as one value: what the report shows.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/run/series.h"
#include "hpqf/observe/run/step_record.h"
#include "hpqf/plan/plan.h"

namespace hpqf::observe {

// result.json: the quality after the last step.
struct RunResult {
  std::string task;  // "images", "text"
  double loss = 0;
  std::optional<double> accuracy, perplexity;
  int64_t samples = 0, steps = 0, skipped = 0;
  double seconds = 0;  // wall time of the last call of train
};

// A line of history.jsonl: the plan changed at the end of `step`.
struct PlanChange {
  int64_t step = 0, epoch = 0;
  std::vector<plan::Change> changes;
};

// A line of alerts.jsonl.
struct Alert {
  int64_t step = 0;
  std::string severity, kind, layer, text;
};

struct SkippedStep {
  int64_t step = 0;
  std::string cause;
};

struct HPQF_API RunRecord {
  std::string folder;
  // Steps of metrics.jsonl. Lists keep their first kLongestList entries; `skipped` and `changes` go on counting.
  static constexpr size_t kLongestList = 1000;
  int64_t steps = 0, first_step = 0, last_step = 0, epochs = 0, skipped = 0, changes = 0;
  Series loss, grad_norm, loss_scale, lr, samples_per_second;
  std::vector<SkippedStep> skipped_steps;
  std::vector<std::pair<int64_t, std::string>> change_texts;  // by step
  double step_seconds = 0;                                    // wall times of all lines, also of steps taken twice
  int64_t timed_steps = 0;                                    // how many steps said their wall time

  std::vector<EvaluationRecord> evaluations;                  // by step
  std::vector<std::pair<std::string, std::string>> settings;  // config.json, in its order
  std::optional<plan::PrecisionPlan> plan;
  plan::ModelFacts facts;
  std::optional<AuditReport> audit;
  std::optional<RunResult> result;

  // What only some runs have.
  std::vector<PlanChange> history;
  std::vector<Alert> alerts;
  // Numbers over steps from monitor.jsonl and gradients.jsonl by "metric" or "layer: metric". At most kMostSeries.
  static constexpr size_t kMostSeries = 2048;
  std::map<std::string, Series> monitored;
  // Numbers and texts of memory.json and cost.json by dotted path, e.g. {"peak.bytes", "123"}.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  Facts memory, cost;

  // What was missing or damaged, for people.
  std::vector<std::string> notes;

  std::string setting(const std::string& key) const;  // "" when there is none
};

// Memory does not grow with the number of steps. A killed run (torn last line, no audit, no result) and files of other
// versions are read as far as they go; `notes` says what was left out. Error: no folder, or none of a run (neither
// metrics.jsonl nor plan.json nor audit.json), or a file that cannot be read.
HPQF_API RunRecord read_run(const std::string& folder);

// The settings in a config.json as text. Error when it is no object.
HPQF_API std::vector<std::pair<std::string, std::string>> settings_of(const std::string& config_json);

// What exporters are told before the first step of a finished run. Same errors.
HPQF_API RunInfo read_run_info(const std::string& folder);

}  // namespace hpqf::observe
