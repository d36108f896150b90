#include "hpqf/observe/export/prometheus_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/observe/export/names.h"

namespace hpqf::observe {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string head(const char* name, const char* help, const char* type) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

std::string single(const char* name, const char* help, const char* type, double value) {
  return head(name, help, type) + fmt::format("{} {}\n", name, number(value));
}

}  // namespace

std::string prometheus_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

void PrometheusState::set(int metric, double value) {
  auto it = std::find_if(values_.begin(), values_.end(), [&](const auto& v) { return v.first == metric; });
  if (it == values_.end()) it = values_.insert(it, {metric, 0});
  it->second = value;
}

void PrometheusState::start(const RunInfo& run) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  steps_ = run.resumed_from;
  last_unix_seconds_ = run.unix_seconds;
  running_ = true;
}

void PrometheusState::step(const StepRecord& step) {
  const std::lock_guard lock(mutex_);
  for (const MetricName& name : metric_names())
    if (const auto value = value_of(name.metric, step, run_)) set(static_cast<int>(name.metric), *value);
  steps_ = step.step;
  skipped_ += step.skipped ? 1 : 0;
  changes_ += static_cast<int64_t>(step.changes.size());
  if (step.unix_seconds) last_unix_seconds_ = *step.unix_seconds;
}

void PrometheusState::evaluation(const EvaluationRecord& evaluation) {
  const std::lock_guard lock(mutex_);
  set(static_cast<int>(Metric::validation_loss), evaluation.loss);
  if (evaluation.accuracy) set(static_cast<int>(Metric::validation_accuracy), *evaluation.accuracy);
}

void PrometheusState::audit(const AuditReport& audit) {
  std::vector<Share> shares;
  for (const AuditReport::Share& share : audit.shares())
    shares.push_back({share.format, share.emulated, share.flops, share.seconds});
  const std::lock_guard lock(mutex_);
  shares_ = std::move(shares);
  set(static_cast<int>(Metric::native_flops), native_flops_share(audit));
  set(static_cast<int>(Metric::as_requested_flops), as_requested_flops_share(audit));
}

void PrometheusState::finish(const RunEnd& end) {
  const std::lock_guard lock(mutex_);
  running_ = false;
  if (end.unix_seconds > 0) last_unix_seconds_ = end.unix_seconds;
}

std::string PrometheusState::text() const {
  const std::lock_guard lock(mutex_);
  std::string out = head("hpqf_run_info", "The run, in its labels; always 1.", "gauge");
  out += fmt::format("hpqf_run_info{{run=\"{}\",model=\"{}\",data=\"{}\",precision=\"{}\"}} 1\n",
                     prometheus_label(run_.name), prometheus_label(run_.model), prometheus_label(run_.data),
                     prometheus_label(run_.precision));
  out += single("hpqf_running", "1 while steps are being taken, 0 after the last.", "gauge", running_ ? 1 : 0);
  out += single("hpqf_steps_total", "Optimizer steps tried, those before a resume included (counted).", "counter",
                static_cast<double>(steps_));
  out += single("hpqf_plan_changes_total", "Decisions on plan and loss scale since this process began (counted).",
                "counter", static_cast<double>(changes_));
  out += single("hpqf_last_step_timestamp_seconds", "Unix time of the last step or of the end of the run (measured).",
                "gauge", last_unix_seconds_);
  for (const MetricName& name : metric_names()) {
    if (name.metric == Metric::skipped) {
      out += single(name.prometheus,
                    "Steps left out because a gradient was not finite, since this process began "
                    "(counted).",
                    "counter", static_cast<double>(skipped_));
    } else if (name.metric == Metric::share_flops || name.metric == Metric::share_time) {
      if (shares_.empty()) continue;
      out += head(name.prometheus, name.help, "gauge");
      for (const Share& share : shares_)
        out += fmt::format("{}{{format=\"{}\",arithmetic=\"{}\"}} {}\n", name.prometheus,
                           prometheus_label(share.format), share.emulated ? "emulated" : "native",
                           number(name.metric == Metric::share_flops ? share.flops : share.seconds));
    } else {
      for (const auto& [metric, value] : values_)
        if (metric == static_cast<int>(name.metric)) out += single(name.prometheus, name.help, "gauge", value);
    }
  }
  return out;
}

}  // namespace hpqf::observe
