// The files of a run: plan.json, metrics.jsonl, audit.json and checkpoints/ in one folder.
#pragma once
#include <optional>
#include <string>

#include "hpqf/observe/audit.h"
#include "hpqf/plan/plan.h"
#include "hpqf/train/checkpoint.h"
#include "hpqf/train/metrics.h"

namespace hpqf::train {

class RunFolder {
 public:
  // Creates the folder when it is missing. Error before anything else is done: it cannot be written; it holds a run and
  // `resume` is off; `resume` is on and there is no checkpoint, or the newest is damaged.
  RunFolder(std::string dir, int keep_checkpoints, bool resume);

  const std::optional<std::string>& resume_from() const { return resume_from_; }
  void start_metrics(int64_t after_step);
  void step(const StepResult& result) { metrics_->write(result); }
  void write_plan(const PrecisionPlan& plan, const plan::ModelFacts& facts) const;
  void write_audit(const observe::AuditReport& report) const;
  const CheckpointFolder& checkpoints() const { return checkpoints_; }

 private:
  std::string file(const char* name) const { return dir_ + "/" + name; }
  std::string dir_;
  CheckpointFolder checkpoints_;
  std::optional<MetricsWriter> metrics_;
  std::optional<std::string> resume_from_;
};

}  // namespace hpqf::train
