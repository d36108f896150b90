#include "hpqf/observe/export/replay.h"

#include <fmt/format.h>

#include <filesystem>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/run/lines.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {

Replayed replay(const std::string& folder, MetricsSink& sink) {
  namespace fs = std::filesystem;
  const RunInfo info = read_run_info(folder);
  const auto file = [&](const char* name) { return (fs::path(folder) / name).string(); };
  std::error_code ignored;
  Replayed done;

  std::vector<EvaluationRecord> evaluations;  // few: one for many steps
  if (fs::exists(file("evaluations.jsonl"), ignored)) {
    for_each_line(file("evaluations.jsonl"), [&](std::string_view line) {
      if (auto evaluation = parse_evaluation(line)) evaluations.push_back(std::move(*evaluation));
    });
  }

  sink.start(info);
  double time = info.unix_seconds;
  size_t next = 0;
  int64_t skipped = 0, last = 0, foreign = 0;
  const auto evaluations_before = [&](int64_t step) {
    for (; next < evaluations.size() && evaluations[next].step < step; ++next, ++done.evaluations) {
      if (!evaluations[next].unix_seconds) evaluations[next].unix_seconds = time;
      sink.evaluation(evaluations[next]);
    }
  };
  if (fs::exists(file("metrics.jsonl"), ignored)) {
    const LinesRead read = for_each_line(file("metrics.jsonl"), [&](std::string_view line) {
      auto step = parse_step(line);
      if (!step) {
        ++foreign;
        return;
      }
      evaluations_before(step->step);
      time = step->unix_seconds ? *step->unix_seconds : time + step->seconds.value_or(0);
      step->unix_seconds = time;
      skipped += step->skipped ? 1 : 0;
      last = step->step;
      ++done.steps;
      sink.step(*step);
    });
    if (read.torn) done.notes.push_back("metrics.jsonl: the last line is torn and was left out: the run was killed");
    if (foreign + read.too_long > 0)
      done.notes.push_back(
          fmt::format("metrics.jsonl: {} lines that are no record of a step left out", foreign + read.too_long));
  } else {
    done.notes.push_back("metrics.jsonl is missing: there are no steps");
  }
  evaluations_before(last + 1);
  if (fs::exists(file("audit.json"), ignored)) {
    try {
      sink.audit(AuditReport::from_json(base::read_file(file("audit.json")), "audit.json"), last, time);
      done.audit = true;
    } catch (const Error& e) {
      done.notes.push_back(fmt::format("audit.json was left out: {}", e.asked()));
    }
  } else {
    done.notes.push_back("audit.json is missing: the run has not ended, or was killed");
  }
  sink.finish({.steps = last, .skipped = skipped, .complete = done.audit, .unix_seconds = time});
  return done;
}

}  // namespace hpqf::observe
