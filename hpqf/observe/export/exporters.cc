#include "hpqf/observe/export/exporters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"
#include "hpqf/observe/export/csv.h"
#include "hpqf/observe/export/jsonl.h"
#include "hpqf/observe/export/mllog.h"
#include "hpqf/observe/export/perfetto.h"
#include "hpqf/observe/export/prometheus.h"
#include "hpqf/observe/export/tensorboard.h"
#include "hpqf/observe/run/utf8.h"

namespace hpqf::observe {
namespace {

struct Row {
  const char *name, *file;
  std::unique_ptr<MetricsSink> (*make)(std::string path, bool live);
};

template <class Sink>
std::unique_ptr<MetricsSink> make(std::string path, bool live) {
  return std::make_unique<Sink>(std::move(path), live);
}

constexpr Row kRows[] = {{"tensorboard", "tensorboard", make<TensorBoardSink>},
                         {"csv", "metrics.csv", make<CsvSink>},
                         {"jsonl", "metrics.named.jsonl", make<JsonlSink>},
                         {"prometheus-textfile", "hpqf.prom", make<PrometheusTextfileSink>},
                         {"mlperf", "mllog.txt", make<MlLogSink>},
                         {"perfetto", "steps.trace.json", make<PerfettoSink>}};

}  // namespace

std::vector<std::string> exporter_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<MetricsSink> make_exporter(const std::string& name, const std::string& folder, bool live) {
  const size_t equals = name.find('=');
  std::string wanted = name.substr(0, equals);
  if (wanted == "prometheus") wanted = "prometheus-textfile";
  for (const Row& row : kRows) {
    if (wanted != row.name) continue;
    const std::string path =
        equals == std::string::npos ? (std::filesystem::path(folder) / row.file).string() : name.substr(equals + 1);
    if (path.empty())
      throw Error(fmt::format("exporter '{}'", name), "NAME or NAME=PATH", "name a file after the =, or leave it out");
    return row.make(path, live);
  }
  const std::vector<std::string> names = exporter_names();
  throw Error(fmt::format("exporter '{}'", wanted), fmt::format("{}", fmt::join(names, ", ")),
              fmt::format("correct the name; perhaps {}", base::nearest(names, wanted, 1).front()));
}

template <class Call>
void ExporterGroup::each(Call&& call) {
  for (auto sink = sinks_.begin(); sink != sinks_.end();) {
    try {
      call(**sink);
      ++sink;
    } catch (const Error& e) {
      warn_(fmt::format("export to {} ends here: {} ({})", (*sink)->where(), e.asked(), e.allowed()));
      sink = sinks_.erase(sink);
    } catch (const std::exception& e) {
      warn_(fmt::format("export to {} ends here: {}", (*sink)->where(), e.what()));
      sink = sinks_.erase(sink);
    }
  }
}

void ExporterGroup::start(const RunInfo& run) {
  RunInfo clean = run;
  for (std::string* text : {&clean.name, &clean.model, &clean.data, &clean.precision}) *text = valid_utf8(*text);
  for (auto& [key, value] : clean.settings) {
    key = valid_utf8(key);
    value = valid_utf8(value);
  }
  each([&](MetricsSink& sink) { sink.start(clean); });
}

void ExporterGroup::step(const StepRecord& step) {
  if (step.cause.empty() && step.changes.empty()) return each([&](MetricsSink& sink) { sink.step(step); });
  StepRecord clean = step;
  clean.cause = valid_utf8(clean.cause);
  for (std::string& change : clean.changes) change = valid_utf8(change);
  each([&](MetricsSink& sink) { sink.step(clean); });
}

void ExporterGroup::evaluation(const EvaluationRecord& evaluation) {
  each([&](MetricsSink& sink) { sink.evaluation(evaluation); });
}

void ExporterGroup::audit(const AuditReport& audit, int64_t step, double unix_seconds) {
  each([&](MetricsSink& sink) { sink.audit(audit, step, unix_seconds); });
}

void ExporterGroup::finish(const RunEnd& end) {
  each([&](MetricsSink& sink) { sink.finish(end); });
}

std::string ExporterGroup::where() const {
  std::string all;
  for (const auto& sink : sinks_) all += (all.empty() ? "" : ", ") + sink->where();
  return all;
}

}  // namespace hpqf::observe
