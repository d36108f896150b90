// Prometheus: a file for the textfile collector of node_exporter, and an endpoint to scrape.
#pragma once
#include <memory>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_server.h"
#include "hpqf/observe/export/metrics_sink.h"
#include "hpqf/observe/export/prometheus_text.h"

namespace hpqf::observe {

// Feeds a state, whoever shows it.
class HPQF_API PrometheusSink : public MetricsSink {
 public:
  void start(const RunInfo& run) override { state_->start(run); }
  void step(const StepRecord& step) override { state_->step(step); }
  void evaluation(const EvaluationRecord& evaluation) override { state_->evaluation(evaluation); }
  void audit(const AuditReport& audit, int64_t, double) override { state_->audit(audit); }
  void finish(const RunEnd& end) override { state_->finish(end); }

 protected:
  std::shared_ptr<PrometheusState> state_ = std::make_shared<PrometheusState>();
};

// The file is replaced as a whole (a scrape never sees half of it): at the first step, then at most every `seconds` of
// wall time, and at the end. The collector reads files that end in ".prom".
class HPQF_API PrometheusTextfileSink : public PrometheusSink {
 public:
  explicit PrometheusTextfileSink(std::string path, bool live, double seconds = 5);
  void step(const StepRecord& step) override;
  void finish(const RunEnd& end) override;
  std::string where() const override { return path_; }

 private:
  std::string path_;
  bool live_;
  int64_t every_ns_, next_ns_ = 0;
};

// GET /metrics on `address`, which is "PORT" (on 127.0.0.1), "HOST:PORT" or "[IPv6]:PORT"; port 0: any that is free.
// Answers until it is destroyed, also after finish(). Error when the port is taken or the address is none.
class HPQF_API PrometheusHttpSink : public PrometheusSink {
 public:
  explicit PrometheusHttpSink(const std::string& address);
  std::string where() const override { return server_.url(); }
  int port() const { return server_.port(); }

 private:
  MetricsServer server_;
};

}  // namespace hpqf::observe
