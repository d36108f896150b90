#include "hpqf/observe/export/perfetto.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "hpqf/plan/json.h"

namespace hpqf::observe {

PerfettoSink::PerfettoSink(std::string path, bool live, int64_t most_bytes)
    : path_(std::move(path)), live_(live), most_bytes_(most_bytes) {
  create_folder_of(path_);
}

void PerfettoSink::event(const std::string& inside) {
  if (full_) return;
  constexpr int64_t kRoomForTheEnd = 512;
  if (file_->size() + static_cast<int64_t>(inside.size()) + kRoomForTheEnd > most_bytes_) {
    full_ = true;
    file_->append(
        fmt::format(",\n{{\"name\":\"trace limit of {} bytes reached\",\"ph\":\"i\",\"s\":\"g\",\"pid\":1,"
                    "\"tid\":1,\"ts\":0}}",
                    most_bytes_));
    return;
  }
  file_->append(fmt::format("{}{{{}}}", std::exchange(first_, false) ? "[\n" : ",\n", inside));
}

void PerfettoSink::start(const RunInfo& run) {
  run_ = run;
  file_.emplace(path_, /*truncate=*/true, live_ ? 0 : size_t{1} << 16);
  const auto named = [&](const char* what, const std::string& name) {
    event(fmt::format("\"name\":\"{}\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{{\"name\":{}}}", what,
                      plan::json_quote(name)));
  };
  named("process_name", run.model.empty() ? "hpqf train" : "hpqf train " + run.model);
  named("thread_name", "steps");
}

void PerfettoSink::step(const StepRecord& step) {
  const double end = at(step.unix_seconds.value_or(run_.unix_seconds)), length = step.seconds.value_or(0) * 1e6;
  event(
      fmt::format("\"name\":\"step\",\"cat\":\"step\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{:.3f},\"dur\":{:.3f},"
                  "\"args\":{{\"step\":{},\"epoch\":{},\"plan_epoch\":{}}}",
                  end - length, length, step.step, step.epoch, step.plan_epoch));
  const auto counter = [&](const char* name, double value) {
    if (std::isfinite(value))
      event(fmt::format("\"name\":\"{}\",\"ph\":\"C\",\"pid\":1,\"ts\":{:.3f},\"args\":{{\"value\":{}}}", name, end,
                        value));
  };
  counter("loss", step.loss);
  counter("loss scale", step.loss_scale);
  if (step.samples_per_second) counter("samples per second", *step.samples_per_second);
  const auto mark = [&](const std::string& text) {
    event(fmt::format("\"name\":{},\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":{:.3f}", plan::json_quote(text),
                      end));
  };
  if (step.skipped) mark("skipped: " + step.cause);
  for (const std::string& change : step.changes) mark(change);
}

void PerfettoSink::evaluation(const EvaluationRecord& evaluation) {
  event(
      fmt::format("\"name\":\"evaluation\",\"ph\":\"i\",\"s\":\"t\",\"pid\":1,\"tid\":1,\"ts\":{:.3f},\"args\":{{"
                  "\"step\":{},\"loss\":\"{}\"}}",
                  at(evaluation.unix_seconds.value_or(run_.unix_seconds)), evaluation.step, evaluation.loss));
}

void PerfettoSink::finish(const RunEnd&) {
  file_->append("\n]\n");
  file_->flush();
}

}  // namespace hpqf::observe
