// Exporters by name, and several of them as one that never stops a run.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"

namespace hpqf::observe {

// "tensorboard", "csv", "jsonl", "prometheus-textfile", "mlperf", "perfetto".
HPQF_API std::vector<std::string> exporter_names();

// An exporter as users name it: NAME, or NAME=PATH for another file (for tensorboard: folder) than the one it has in
// `folder`. `live`: each record is on disk before the next step. Error: unknown name (with the nearest), a folder that
// cannot be made.
HPQF_API std::unique_ptr<MetricsSink> make_exporter(const std::string& name, const std::string& folder, bool live);

// Passes everything on. One that throws is reported once, by its place and what went wrong, and hears nothing more: the
// run and the other exporters go on. Texts that are not UTF-8 are made so.
class HPQF_API ExporterGroup : public MetricsSink {
 public:
  using Warn = std::function<void(const std::string& text)>;
  explicit ExporterGroup(Warn warn) : warn_(std::move(warn)) {}
  void add(std::unique_ptr<MetricsSink> sink) { sinks_.push_back(std::move(sink)); }
  bool empty() const { return sinks_.empty(); }

  void start(const RunInfo& run) override;
  void step(const StepRecord& step) override;
  void evaluation(const EvaluationRecord& evaluation) override;
  void audit(const AuditReport& audit, int64_t step, double unix_seconds) override;
  void finish(const RunEnd& end) override;
  std::string where() const override;  // of those that still listen, separated by ", "

 private:
  template <class Call>
  void each(Call&& call);
  Warn warn_;
  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

}  // namespace hpqf::observe
