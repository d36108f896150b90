// Log lines in the form of MLPerf Training (github.com/mlcommons/logging): ":::MLLOG {json}".
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/output_file.h"

namespace hpqf::observe {

// run_start, run_stop, eval_accuracy with samples_count, tracked_stats for loss and throughput (one line a step), and
// the hyperparameters under their keys in MLPerf. Not a submission: what the rules ask about the system is not in it. A
// resumed run appends to its file.
class HPQF_API MlLogSink : public MetricsSink {
 public:
  MlLogSink(std::string path, bool live);  // Error when the folder cannot be made
  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return path_; }

 private:
  // `value` and `metadata` (the inside of an object, "" for none) are JSON.
  void line(double unix_seconds, const char* type, const char* key, std::string_view value,
            std::string_view metadata = "");
  std::string path_;
  bool live_;
  RunInfo run_;
  std::optional<OutputFile> file_;
};

}  // namespace hpqf::observe
