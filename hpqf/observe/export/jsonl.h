// JSON lines under the names of names.h, for tools that know torchtitan's.
#pragma once
#include <optional>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/output_file.h"

namespace hpqf::observe {

// One object per step, evaluation and audit: {"step", "time", tag: number, ...}. JSON has no NaN: a non-finite number
// is the text "nan", "inf" or "-inf". A resumed run goes on in its file, without the steps it takes again.
class HPQF_API JsonlSink : public MetricsSink {
 public:
  JsonlSink(std::string path, bool live);  // Error when the folder cannot be made
  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void audit(const AuditReport& audit, int64_t step, double unix_seconds) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return path_; }

 private:
  std::string path_;
  bool live_;
  RunInfo run_;
  std::optional<OutputFile> file_;
};

}  // namespace hpqf::observe
