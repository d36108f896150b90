#include "hpqf/observe/export/prometheus.h"

#include "hpqf/base/clock.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/export/output_file.h"

namespace hpqf::observe {

PrometheusTextfileSink::PrometheusTextfileSink(std::string path, bool live, double seconds)
    : path_(std::move(path)), live_(live), every_ns_(static_cast<int64_t>(seconds * 1e9)) {
  create_folder_of(path_);
}

void PrometheusTextfileSink::step(const StepRecord& step) {
  PrometheusSink::step(step);
  if (!live_) return;  // of a finished run only the end counts
  const int64_t now = base::steady_ns();
  if (now < next_ns_) return;
  base::atomic_write(path_, state_->text());
  next_ns_ = now + every_ns_;
}

void PrometheusTextfileSink::finish(const RunEnd& end) {
  PrometheusSink::finish(end);
  base::atomic_write(path_, state_->text());
}

PrometheusHttpSink::PrometheusHttpSink(const std::string& address)
    : server_(address, [state = state_] { return state->text(); }) {}

}  // namespace hpqf::observe
