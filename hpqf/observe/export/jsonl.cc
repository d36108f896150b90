#include "hpqf/observe/export/jsonl.h"

#include <fmt/format.h>

#include <cmath>

#include "hpqf/observe/export/names.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

// Built by hand: a million of these are written from a long run.
class Line {
 public:
  Line(int64_t step, std::optional<double> time) : text_(fmt::format("{{\"step\":{}", step)) {
    if (time) number("time", *time);
  }
  void number(std::string_view key, double value) {
    if (std::isfinite(value))
      text_ += fmt::format(",\"{}\":{}", key, value);
    else
      text_ += fmt::format(",\"{}\":\"{}\"", key, std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  }
  void text(std::string_view key, std::string_view value) {
    text_ += fmt::format(",\"{}\":{}", key, plan::json_quote(value));
  }
  std::string end() const { return text_ + "}\n"; }

 private:
  std::string text_;
};

bool is_up_to(std::string_view line, int64_t last_step) {
  const auto step = parse_step(line);
  return step && step->step <= last_step;
}

}  // namespace

JsonlSink::JsonlSink(std::string path, bool live) : path_(std::move(path)), live_(live) { create_folder_of(path_); }

void JsonlSink::start(const RunInfo& run) {
  run_ = run;
  if (run.resumed_from > 0) keep_lines(path_, is_up_to, run.resumed_from);
  file_.emplace(path_, /*truncate=*/run.resumed_from == 0, live_ ? 0 : size_t{1} << 16);
}

void JsonlSink::step(const StepRecord& step) {
  Line line(step.step, step.unix_seconds);
  for (const MetricName& name : metric_names())
    if (const auto value = value_of(name.metric, step, run_)) line.number(name.tag, *value);
  if (!step.cause.empty()) line.text("cause", step.cause);
  file_->append(line.end());
}

void JsonlSink::evaluation(const EvaluationRecord& evaluation) {
  Line line(evaluation.step, evaluation.unix_seconds);
  line.number(name_of(Metric::validation_loss).tag, evaluation.loss);
  if (evaluation.accuracy) line.number(name_of(Metric::validation_accuracy).tag, *evaluation.accuracy);
  file_->append(line.end());
}

void JsonlSink::audit(const AuditReport& audit, int64_t step, double unix_seconds) {
  Line line(step, unix_seconds);
  for (const AuditReport::Share& share : audit.shares()) {
    const std::string format = share.format + (share.emulated ? "_emulated" : "");
    line.number(fmt::format("{}_{}", name_of(Metric::share_flops).tag, format), share.flops);
    line.number(fmt::format("{}_{}", name_of(Metric::share_time).tag, format), share.seconds);
  }
  line.number(name_of(Metric::native_flops).tag, native_flops_share(audit));
  line.number(name_of(Metric::as_requested_flops).tag, as_requested_flops_share(audit));
  file_->append(line.end());
}

void JsonlSink::finish(const RunEnd&) { file_->flush(); }

}  // namespace hpqf::observe
