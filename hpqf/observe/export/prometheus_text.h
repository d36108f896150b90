// The state of a run in the text format of Prometheus, version 0.0.4.
#pragma once
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"

namespace hpqf::observe {

HPQF_API std::string prometheus_label(std::string_view value);  // escaped: backslash, quote, line feed

// Every metric of hpqf/observe/export/names.h, counters of steps, a mark of time, and the run's labels on
// hpqf_run_info. Numbers are those of the last step that had them. Safe to read from one thread while another feeds it.
class HPQF_API PrometheusState {
 public:
  void start(const RunInfo& run);
  void step(const StepRecord& step);
  void evaluation(const EvaluationRecord& evaluation);
  void audit(const AuditReport& audit);
  void finish(const RunEnd& end);
  std::string text() const;

 private:
  struct Share {
    std::string format;
    bool emulated;
    double flops, seconds;
  };
  mutable std::mutex mutex_;
  RunInfo run_;
  StepRecord last_;
  int64_t steps_ = 0, skipped_ = 0, changes_ = 0;
  double last_unix_seconds_ = 0;
  std::vector<std::pair<int, double>> values_;  // by Metric
  std::vector<Share> shares_;
  bool running_ = false;
  void set(int metric, double value);
};

}  // namespace hpqf::observe
