// The exporters of `hpqf train`: what a run tells others while it goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "apps/hpqf/train_config.h"
#include "hpqf/observe/export/exporters.h"
#include "hpqf/train/trainer.h"

namespace hpqf::app {

class TrainExports {
 public:
  // Error: an exporter nobody knows, or whose file cannot be made. A port that is taken is only a warning: the run goes
  // on without its endpoint. `warn` also hears of exporters that fail later.
  TrainExports(const TrainConfig& config, int64_t tokens_per_sample, std::function<void(const std::string&)> warn);

  // Starts the exporters at the first step. The audit, which changes slowly and costs more, follows every 15 s.
  void step(const StepResult& result, const std::function<observe::AuditReport()>& audit);
  void evaluation(const observe::EvaluationRecord& evaluation) { group_.evaluation(evaluation); }
  void finish(const TrainSummary& summary, const observe::AuditReport& audit);
  std::string where() const { return group_.where(); }

 private:
  observe::RunInfo info_;
  observe::ExporterGroup group_;
  bool started_ = false;
  int64_t next_audit_ns_ = 0;
  int64_t last_step_ = 0;
};

}  // namespace hpqf::app
