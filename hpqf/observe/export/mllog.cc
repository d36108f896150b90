#include "hpqf/observe/export/mllog.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

constexpr const char* kPoint = "POINT_IN_TIME";

// Options of `hpqf train` that MLPerf has a key for; the values are numbers but for the first two.
struct Key {
  const char *setting, *key;
};
constexpr Key kHyperparameters[] = {{"model", "submission_benchmark"},
                                    {"optimizer", "opt_name"},
                                    {"lr", "opt_base_learning_rate"},
                                    {"momentum", "sgd_opt_momentum"},
                                    {"weight-decay", "opt_weight_decay"},
                                    {"warmup", "opt_learning_rate_warmup_steps"},
                                    {"accumulate", "gradient_accumulation_steps"},
                                    {"seed", "seed"}};

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("\"{}\"", value);
}

std::string json_setting(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 && std::isfinite(value) ? fmt::format("{}", value) : plan::json_quote(text);
}

}  // namespace

MlLogSink::MlLogSink(std::string path, bool live) : path_(std::move(path)), live_(live) { create_folder_of(path_); }

void MlLogSink::line(double unix_seconds, const char* type, const char* key, std::string_view value,
                     std::string_view metadata) {
  // The readers of MLPerf want a place in the source; it says nothing here.
  file_->append(
      fmt::format(":::MLLOG {{\"namespace\": \"\", \"time_ms\": {}, \"event_type\": \"{}\", \"key\": \"{}\", "
                  "\"value\": {}, \"metadata\": {{\"file\": \"hpqf\", \"lineno\": 0{}{}}}}}\n",
                  static_cast<int64_t>(unix_seconds * 1e3), type, key, value, metadata.empty() ? "" : ", ", metadata));
}

void MlLogSink::start(const RunInfo& run) {
  run_ = run;
  file_.emplace(path_, /*truncate=*/run.resumed_from == 0, live_ ? 0 : size_t{1} << 16);
  for (const Key& row : kHyperparameters)
    for (const auto& [setting, value] : run.settings)
      if (setting == row.setting) line(run.unix_seconds, kPoint, row.key, json_setting(value));
  if (run.batch_size > 0) line(run.unix_seconds, kPoint, "global_batch_size", fmt::format("{}", run.batch_size));
  line(run.unix_seconds, "INTERVAL_START", "run_start", "null",
       run.resumed_from > 0 ? fmt::format("\"resumed_from_step\": {}", run.resumed_from) : "");
}

void MlLogSink::step(const StepRecord& step) {
  std::string stats = fmt::format("{{\"train_loss\": {}", json_number(step.loss));
  if (step.samples_per_second) stats += fmt::format(", \"throughput\": {}", json_number(*step.samples_per_second));
  line(step.unix_seconds.value_or(run_.unix_seconds), kPoint, "tracked_stats", stats + "}",
       fmt::format("\"step\": {}, \"epoch_num\": {}", step.step, step.epoch));
}

void MlLogSink::evaluation(const EvaluationRecord& evaluation) {
  const double time = evaluation.unix_seconds.value_or(run_.unix_seconds);
  const std::string place = fmt::format("\"step\": {}, \"epoch_num\": {}", evaluation.step, evaluation.epoch);
  // MLPerf calls the quality "eval_accuracy" whatever it is; language models give their loss.
  line(time, kPoint, "eval_accuracy", json_number(evaluation.accuracy.value_or(evaluation.loss)),
       fmt::format("{}, \"metric\": \"{}\", \"eval_loss\": {}, \"samples_count\": {}", place,
                   evaluation.accuracy ? "accuracy" : "loss", json_number(evaluation.loss), evaluation.samples));
}

void MlLogSink::finish(const RunEnd& end) {
  line(end.unix_seconds, "INTERVAL_END", "run_stop", "null",
       fmt::format("\"status\": \"{}\", \"steps\": {}, \"skipped_steps\": {}", end.complete ? "success" : "aborted",
                   end.steps, end.skipped));
  file_->flush();
}

}  // namespace hpqf::observe
