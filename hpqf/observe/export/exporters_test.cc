#include "hpqf/observe/export/exporters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "hpqf/observe/export/csv.h"
#include "hpqf/observe/export/names.h"
#include "hpqf/observe/export/output_file.h"
#include "hpqf/observe/export/perfetto.h"
#include "hpqf/observe/export/replay.h"
#include "hpqf/observe/run/fixtures_test.h"

namespace hpqf::observe {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::vector<std::string>& warnings_of(ExporterGroup& group, std::vector<std::string>& warnings) {
  group.start(made_run());
  for (int64_t n = 1; n <= 3; ++n) group.step(made_step(n));
  group.finish({.steps = 3, .unix_seconds = 1.7e9 + 1});
  return warnings;
}

TEST(Names, AreDistinctAndComplete) {
  std::set<std::string> tags, prometheus, columns;
  for (const MetricName& name : metric_names()) {
    EXPECT_TRUE(tags.insert(name.tag).second) << name.tag;
    EXPECT_TRUE(prometheus.insert(name.prometheus).second) << name.prometheus;
    EXPECT_TRUE(!name.column || columns.insert(name.column).second) << name.column;
    EXPECT_EQ(&name_of(name.metric), &name);
    // prometheus.io/docs/practices/naming: lower case, one prefix.
    for (const char c : std::string(name.prometheus)) EXPECT_TRUE(std::islower(c) || std::isdigit(c) || c == '_');
    EXPECT_EQ(std::string(name.prometheus).substr(0, 5), "hpqf_");
  }
  EXPECT_DOUBLE_EQ(native_flops_share(made_audit()), 0.8);
  EXPECT_DOUBLE_EQ(as_requested_flops_share(made_audit()), 0.8);
  EXPECT_EQ(native_flops_share({}), 0);
}

TEST(Exporters, UnknownNamesAndFolders) {
  const Folder folder;
  EXPECT_HAS(error_of([&] { make_exporter("tensorbord", folder.path(), true); }), "perhaps tensorboard");
  EXPECT_HAS(error_of([&] { make_exporter("csv=", folder.path(), true); }), "NAME=PATH");
  folder.write("file", "");
  for (const std::string& name : exporter_names())
    EXPECT_HAS(error_of([&] { make_exporter(name, folder / "file/sub", true); }), "folder") << name;
}

TEST(Exporters, EachWritesItsFileInAFolderOfItsOwn) {
  const Folder folder;
  std::vector<std::string> warnings;
  ExporterGroup group([&](const std::string& text) { warnings.push_back(text); });
  for (const std::string& name : exporter_names()) group.add(make_exporter(name, folder / "a/b", true));
  group.add(make_exporter("csv=" + (folder / "other.csv"), folder / "a/b", true));
  EXPECT_TRUE(warnings_of(group, warnings).empty()) << warnings.front();
  for (const char* name : {"metrics.csv", "metrics.named.jsonl", "hpqf.prom", "mllog.txt", "steps.trace.json"})
    EXPECT_GT(std::filesystem::file_size((folder / "a/b/") + name), 100u) << name;
  EXPECT_EQ(base::read_file(folder / "other.csv"), base::read_file(folder / "a/b/metrics.csv"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "a/b/tensorboard"), {}), 1);
}

// A disk that is full: one warning, and the others go on.
TEST(Exporters, OneThatFailsDoesNotStopTheOthers) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "/dev/full IS NO DEVICE HERE: not tested";
  for (const char* name : {"csv", "jsonl", "mlperf", "perfetto"}) {
    const Folder folder;
    std::vector<std::string> warnings;
    ExporterGroup group([&](const std::string& text) { warnings.push_back(text); });
    group.add(make_exporter(std::string(name) + "=/dev/full", folder.path(), true));
    group.add(make_exporter("csv", folder.path(), true));
    warnings_of(group, warnings);
    ASSERT_EQ(warnings.size(), 1u) << name;
    EXPECT_HAS(warnings[0], "/dev/full");
    EXPECT_HAS(warnings[0], "No space left");
    EXPECT_EQ(lines_of(base::read_file(folder / "metrics.csv")).size(), 4u);
    EXPECT_EQ(group.where(), folder / "metrics.csv");
  }
}

TEST(Exporters, AFolderThatIsTakenAwayWarnsOnce) {
  const Folder folder;
  std::vector<std::string> warnings;
  ExporterGroup group([&](const std::string& text) { warnings.push_back(text); });
  group.add(make_exporter("prometheus-textfile", folder / "x", true));
  std::filesystem::remove_all(folder / "x");
  warnings_of(group, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "hpqf.prom");
  EXPECT_TRUE(group.empty());
}

TEST(Csv, QuotesAsRfc4180) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, RowsAndAResume) {
  const Folder folder;
  const auto run = [&](int64_t from, int64_t to) {
    ExporterGroup group([](const std::string& text) { FAIL() << text; });
    group.add(make_exporter("csv", folder.path(), true));
    group.add(make_exporter("jsonl", folder.path(), true));
    RunInfo info = made_run();
    info.resumed_from = from - 1;
    group.start(info);
    for (int64_t n = from; n <= to; ++n) {
      StepRecord step = made_step(n, n == 2 ? std::nan("") : 0.1 * static_cast<double>(n));
      if (n == 2) step.skipped = true, step.cause = "layer \"a,b\":\nbad \xff";
      group.step(step);
    }
    group.evaluation({to, 0, 0.25, 0.75, 10, std::nullopt});
  };
  run(1, 5);
  run(4, 6);  // 4, 5 and the evaluation after 5 are made again
  const std::vector<std::string> lines = lines_of(base::read_file(folder / "metrics.csv"));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(
      lines[0],
      "step,time,loss,grad_norm,lr,samples_per_second,seconds,loss_scale,skipped,epoch,plan_epoch,validation_loss,"
      "validation_accuracy,cause\r");
  EXPECT_EQ(lines[1], "1,1700000000.25,0.1,,0.01,64,0.25,1024,0,0,0,,,\r");
  EXPECT_EQ(lines[2], "2,1700000000.5,nan,,0.01,64,0.25,1024,1,0,0,,,\"layer \"\"a,b\"\": bad \xef\xbf\xbd\"\r");
  EXPECT_EQ(lines[3].substr(0, 36), "3,1700000000.75,0.30000000000000004,") << "to the last bit";
  EXPECT_EQ(lines[6].substr(0, 2), "6,");
  EXPECT_EQ(lines[7], "6,,,,,,,,,0,,0.25,0.75,\r");
  const std::vector<std::string> json = lines_of(base::read_file(folder / "metrics.named.jsonl"));
  ASSERT_EQ(json.size(), 7u);
  const auto second = nlohmann::json::parse(json[1]);
  EXPECT_EQ(second["loss_metrics/global_avg_loss"], "nan");
  EXPECT_EQ(second["precision/skipped_step"], 1);
  EXPECT_FALSE(second.contains("throughput(tps)")) << "nobody said how many tokens a sample has";
  EXPECT_EQ(nlohmann::json::parse(json[6])["validation_metrics/accuracy"], 0.75);
}

TEST(Tokens, RateOnlyWhereSamplesHaveTokens) {
  RunInfo run = made_run();
  EXPECT_FALSE(value_of(ExportedMetric::tokens_per_second, made_step(1), run));
  run.tokens_per_sample = 128;
  EXPECT_EQ(value_of(ExportedMetric::tokens_per_second, made_step(1), run), 64 * 128);
}

TEST(MlLog, LinesOfARun) {
  const Folder folder;
  ExporterGroup group([](const std::string& text) { FAIL() << text; });
  group.add(make_exporter("mlperf", folder.path(), true));
  group.start(made_run());
  group.step(made_step(1, std::numeric_limits<double>::infinity()));
  group.evaluation({1, 0, 0.25, 0.75, 10, 1.7e9 + 1});
  group.finish({.steps = 1, .skipped = 0, .complete = false, .unix_seconds = 1.7e9 + 2});
  std::vector<std::string> keys;
  for (const std::string& line : lines_of(base::read_file(folder / "mllog.txt"))) {
    ASSERT_EQ(line.substr(0, 10), ":::MLLOG {");
    const auto json = nlohmann::json::parse(line.substr(9));
    for (const char* key : {"namespace", "time_ms", "event_type", "key", "value", "metadata"})
      EXPECT_TRUE(json.contains(key)) << line;
    EXPECT_TRUE(json["time_ms"].is_number_integer());
    keys.push_back(json["key"]);
    if (keys.back() == "eval_accuracy") {
      EXPECT_EQ(json["value"], 0.75);
      EXPECT_EQ(json["time_ms"], 1700000001000);
    }
    if (keys.back() == "run_stop") {
      EXPECT_EQ(json["metadata"]["status"], "aborted");
    }
    if (keys.back() == "tracked_stats") {
      EXPECT_EQ(json["value"]["train_loss"], "inf");
    }
  }
  EXPECT_EQ(keys,
            (std::vector<std::string>{"submission_benchmark", "opt_name", "opt_base_learning_rate", "global_batch_size",
                                      "run_start", "tracked_stats", "eval_accuracy", "run_stop"}));
}

TEST(Perfetto, StepsOnATimeLine) {
  const Folder folder;
  PerfettoSink sink(folder / "t.json", true);
  sink.start(made_run());
  StepRecord skipped = made_step(2, std::nan(""));
  skipped.skipped = true;
  skipped.cause = "a \"b\"";
  sink.step(made_step(1));
  sink.step(skipped);
  sink.finish({});
  const auto events = nlohmann::json::parse(base::read_file(folder / "t.json"));
  double end = 0;
  int steps = 0;
  for (const auto& event : events) {
    if (event["ph"] != "X") continue;
    ++steps;
    EXPECT_GE(event["ts"].get<double>(), end) << "steps do not overlap";
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 0.25e6);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& e) { return e["name"] == "skipped: a \"b\""; }));
}

TEST(Perfetto, StaysUnderItsLimitAndSaysSo) {
  const Folder folder;
  PerfettoSink sink(folder / "t.json", true, 10000);
  sink.start(made_run());
  for (int64_t n = 1; n <= 1000; ++n) sink.step(made_step(n));
  sink.finish({});
  const std::string text = base::read_file(folder / "t.json");
  EXPECT_LT(text.size(), 10000u);
  EXPECT_GT(text.size(), 9000u);
  EXPECT_HAS(nlohmann::json::parse(text).back()["name"].get<std::string>(), "limit");
}

TEST(OutputFile, HoldsBackAndWrites) {
  const Folder folder;
  OutputFile file(folder / "f", true, 10);
  file.append("12345");
  EXPECT_EQ(base::read_file(folder / "f"), "");
  EXPECT_EQ(file.size(), 5);
  file.append("678901");
  EXPECT_EQ(base::read_file(folder / "f"), "12345678901");
  EXPECT_HAS(error_of([&] { OutputFile(folder / "no/f", true, 0); }), "no/f");
}

struct Told : MetricsSink {
  std::string order;
  RunInfo info;
  std::vector<double> times;
  void start(const RunInfo& run) override { order += "(", info = run; }
  void step(const StepRecord& step) override {
    order += std::to_string(step.step), times.push_back(*step.unix_seconds);
  }
  void evaluation(const EvaluationRecord& e) override { order += "e" + std::to_string(e.step); }
  void audit(const AuditReport&, int64_t step, double) override { order += "a" + std::to_string(step); }
  void finish(const RunEnd& end) override { order += end.complete ? ")" : "!"; }
  std::string where() const override { return "here"; }
};

TEST(Replay, InTheOrderInWhichItHappened) {
  const Folder folder;
  folder.write("metrics.jsonl",
               "{\"step\":1,\"loss\":1,\"seconds\":2}\nx\n{\"step\":2,\"loss\":1,\"seconds\":3}\n{\"step\":3,\"time\":"
               "5}\n{\"st");
  folder.write("evaluations.jsonl", "{\"step\":2,\"loss\":1}\n{\"step\":9,\"loss\":1}\n");
  Told told;
  const Replayed done = replay(folder.path(), told);
  EXPECT_EQ(told.order, "(12e23!") << "9 lies behind the last step that is known";
  EXPECT_EQ(done.steps, 3);
  EXPECT_EQ(done.notes.size(), 3u);
  EXPECT_DOUBLE_EQ(told.times[0], told.info.unix_seconds + 2);
  EXPECT_DOUBLE_EQ(told.times[1], told.info.unix_seconds + 5);
  EXPECT_EQ(told.times[2], 5);
  folder.write("audit.json", made_audit().to_json());
  told.order.clear();
  EXPECT_TRUE(replay(folder.path(), told).audit);
  EXPECT_EQ(told.order, "(12e23a3)");
  const Folder empty;
  EXPECT_HAS(error_of([&] { replay(empty.path(), told); }), "holds no run");
}

}  // namespace
}  // namespace hpqf::observe
