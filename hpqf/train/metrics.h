// metrics.jsonl: one JSON object a step, on disk before the next step starts.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/run/step_record.h"
#include "hpqf/train/step.h"

namespace hpqf::train {

// {"step","epoch","loss","loss_scale","skipped","cause","lr","samples","seconds","wall_seconds","samples_per_second",
// "time","grad_norm","plan_epoch","changes"}; `cause` and `changes` only when there are any, `grad_norm` only when it
// was computed, `time` (Unix seconds) only when it is known. JSON has no NaN: a non-finite loss is null plus
// "loss_text":"nan". `wall_seconds`: from the end of the step before in this process, by a steady clock. Data loading
// and checkpoints are in it, the time between two processes and changes of the wall clock are not.
HPQF_API std::string metrics_line(const StepResult& result, double wall_seconds);

// The same as the value that exporters are fed with.
HPQF_API observe::StepRecord step_record(const StepResult& result);

// Appends whole lines with one write(2) each: a killed run leaves at most one torn line, at the end.
class HPQF_API MetricsWriter {
 public:
  // `after_step` 0 starts the file anew; otherwise lines of later steps and a torn last line are dropped first
  // (atomically): they belong to steps that a resumed run takes again. What they cost stays, as "repeated_seconds"
  // of the last line that is kept. Error when the file cannot be written.
  MetricsWriter(const std::string& path, int64_t after_step);
  void write(const StepResult& result);

 private:
  base::LineAppender lines_;
  int64_t last_ns_;
};

}  // namespace hpqf::train
