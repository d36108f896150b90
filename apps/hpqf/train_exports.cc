#include "apps/hpqf/train_exports.h"

#include <fmt/format.h>

#include <filesystem>

#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/export/prometheus.h"
#include "hpqf/train/metrics.h"

namespace hpqf::app {
namespace {

constexpr int64_t kAuditEveryNs = 15'000'000'000;

}  // namespace

TrainExports::TrainExports(const TrainConfig& config, int64_t tokens_per_sample,
                           std::function<void(const std::string&)> warn)
    : group_(warn) {
  info_.name = std::filesystem::path(config.out).lexically_normal().filename().string();
  info_.model = config.model;
  info_.data = config.data;
  info_.precision = config.plan.empty() ? config.precision : config.plan;
  info_.batch_size = config.batch_size;
  info_.tokens_per_sample = tokens_per_sample;
  info_.settings = settings_text(config);
  const std::string folder = (std::filesystem::path(config.out) / "export").string();
  for (const std::string& name : config.exports) group_.add(observe::make_exporter(name, folder, /*live=*/true));
  if (config.prometheus.empty()) return;
  try {
    group_.add(std::make_unique<observe::PrometheusHttpSink>(config.prometheus));
  } catch (const Error& e) {
    warn(fmt::format("no Prometheus endpoint, the run goes on: {} ({})", e.asked(), e.todo()));
  }
}

void TrainExports::step(const StepResult& result, const std::function<observe::AuditReport()>& audit) {
  if (group_.empty()) return;
  if (!started_) {
    info_.resumed_from = result.step - 1;
    info_.unix_seconds = result.unix_seconds - result.seconds;
    group_.start(info_);
    started_ = true;
    next_audit_ns_ = base::steady_ns() + kAuditEveryNs;
  }
  group_.step(train::step_record(result));
  last_step_ = result.step;
  if (base::steady_ns() < next_audit_ns_) return;
  group_.audit(audit(), result.step, result.unix_seconds);
  next_audit_ns_ = base::steady_ns() + kAuditEveryNs;
}

void TrainExports::finish(const TrainSummary& summary, const observe::AuditReport& audit) {
  if (!started_) return;
  const double now = base::unix_seconds();
  group_.audit(audit, last_step_, now);
  group_.finish(
      {.steps = summary.steps, .skipped = summary.skipped, .complete = !summary.stopped, .unix_seconds = now});
}

}  // namespace hpqf::app
