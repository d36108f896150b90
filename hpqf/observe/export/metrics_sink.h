// Who listens to a run: one small class per file format or protocol, fed step by step by a trainer or from a finished
// run.
#pragma once
#include <memory>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/run/step_record.h"

namespace hpqf::observe {

// Called on the training thread, in this order: start, then steps, evaluations and audits as they happen, then finish.
// Each may throw Error (disk full, ...). A sink that is destroyed without finish() leaves a file of whole records.
class HPQF_API MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void start(const RunInfo&) {}
  virtual void step(const StepRecord&) = 0;
  virtual void evaluation(const EvaluationRecord&) {}
  virtual void audit(const AuditReport&, int64_t step, double unix_seconds) {}  // of all steps so far
  virtual void finish(const RunEnd&) {}
  virtual std::string where() const = 0;  // path or address, for people
};

}  // namespace hpqf::observe
