// Steps on a time line, for ui.perfetto.dev or chrome://tracing (the JSON array of the Trace Event Format).
#pragma once
#include <optional>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/output_file.h"

namespace hpqf::observe {

// A slice per step, counters of loss, loss scale and throughput, marks for skipped steps, changes of the plan and
// evaluations. The file stays under `most_bytes`: when it is reached a last mark says so. A killed run leaves an array
// without its end, which both viewers read.
class HPQF_API PerfettoSink : public MetricsSink {
 public:
  PerfettoSink(std::string path, bool live, int64_t most_bytes = int64_t{64} << 20);
  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return path_; }

 private:
  void event(const std::string& inside);
  double at(double unix_seconds) const { return (unix_seconds - run_.unix_seconds) * 1e6; }  // us since the start

  std::string path_;
  bool live_;
  int64_t most_bytes_;
  bool full_ = false, first_ = true;
  RunInfo run_;
  std::optional<OutputFile> file_;
};

}  // namespace hpqf::observe
