#include "hpqf/observe/export/csv.h"

#include <fmt/format.h>

#include <charconv>

#include "hpqf/observe/export/names.h"

namespace hpqf::observe {
namespace {

std::string number(std::optional<double> value) { return value ? fmt::format("{}", *value) : ""; }

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string header() {
  std::string line = "step,time";
  for (const MetricName& name : metric_names())
    if (name.column) line += fmt::format(",{}", name.column);
  return line + ",cause\r\n";
}

bool is_up_to(std::string_view line, int64_t last_step) {
  int64_t step = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), step);
  return code != std::errc() || step <= last_step;  // the header has no number
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

CsvSink::CsvSink(std::string path, bool live) : path_(std::move(path)), live_(live) { create_folder_of(path_); }

void CsvSink::start(const RunInfo& run) {
  run_ = run;
  if (run.resumed_from > 0) keep_lines(path_, is_up_to, run.resumed_from);
  file_.emplace(path_, /*truncate=*/run.resumed_from == 0, live_ ? 0 : size_t{1} << 16);
  if (file_->size() == 0) file_->append(header());
}

void CsvSink::step(const StepRecord& step) {
  std::string line = fmt::format("{},{}", step.step, number(step.unix_seconds));
  for (const MetricName& name : metric_names())
    if (name.column) line += ',' + number(value_of(name.metric, step, run_));
  file_->append(line + ',' + csv_field(one_line(step.cause)) + "\r\n");
}

void CsvSink::evaluation(const EvaluationRecord& evaluation) {
  std::string line = fmt::format("{},{}", evaluation.step, number(evaluation.unix_seconds));
  for (const MetricName& name : metric_names()) {
    if (!name.column) continue;
    line += ',';
    if (name.metric == Metric::epoch) line += fmt::format("{}", evaluation.epoch);
    if (name.metric == Metric::validation_loss) line += number(evaluation.loss);
    if (name.metric == Metric::validation_accuracy) line += number(evaluation.accuracy);
  }
  file_->append(line + ",\r\n");
}

void CsvSink::finish(const RunEnd&) { file_->flush(); }

}  // namespace hpqf::observe
