#include "hpqf/train/metrics.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "hpqf/base/file.h"
#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

StepResult step(int64_t n) {
  return {.step = n,
          .epoch = 1,
          .applied = true,
          .loss = 0.1,
          .loss_scale = 65536,
          .lr = 0.01,
          .samples = 8,
          .seconds = 0.5};
}

std::vector<int64_t> steps_in(const std::string& path) {
  std::vector<int64_t> steps;
  std::istringstream content(base::read_file(path));
  for (std::string line; std::getline(content, line);)
    steps.push_back(nlohmann::json::parse(line)["step"].get<int64_t>());
  return steps;
}

TEST(Metrics, OneJsonObjectALine) {
  StepResult r = step(3);
  const nlohmann::json applied = nlohmann::json::parse(metrics_line(r, 0.75));
  EXPECT_EQ(applied["loss"].get<double>(), 0.1);  // to the last bit
  EXPECT_EQ(applied["skipped"], false);
  EXPECT_EQ(applied["samples_per_second"], 16.0);
  EXPECT_EQ(applied["samples"], 8);
  EXPECT_EQ(applied["seconds"], 0.5);
  EXPECT_EQ(applied["wall_seconds"], 0.75);
  EXPECT_FALSE(applied.contains("cause"));
  EXPECT_FALSE(applied.contains("grad_norm"));
  r.applied = false;
  r.loss = std::nan("");
  r.grad_norm = -std::numeric_limits<double>::infinity();
  r.cause = "layer a: \"quoted\"\n and \xff not UTF-8";
  const std::string line = metrics_line(r, 0.75);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const nlohmann::json skipped = nlohmann::json::parse(line);
  EXPECT_TRUE(skipped["loss"].is_null());
  EXPECT_EQ(skipped["loss_text"], "nan");
  EXPECT_EQ(skipped["grad_norm_text"], "-inf");
  EXPECT_EQ(skipped["skipped"], true);
}

// What is read back is what exporters are fed with live, to the last bit.
TEST(Metrics, ALineReadsBackAsTheRecord) {
  StepResult r = step(3);
  r.grad_norm = 1.0 / 3;
  r.unix_seconds = 1700000000.25;
  r.applied = false;
  r.cause = "layer a";
  r.changes = {"one", "two"};
  for (const double loss : {0.1, std::numeric_limits<double>::infinity()}) {
    r.loss = loss;
    const observe::StepRecord want = step_record(r);
    const auto got = observe::parse_step(metrics_line(r, 0.75));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->step, want.step);
    EXPECT_EQ(got->epoch, want.epoch);
    EXPECT_EQ(got->loss, want.loss);
    EXPECT_EQ(got->loss_scale, want.loss_scale);
    EXPECT_EQ(got->skipped, want.skipped);
    EXPECT_EQ(got->cause, want.cause);
    EXPECT_EQ(got->lr, want.lr);
    EXPECT_EQ(got->grad_norm, want.grad_norm);
    EXPECT_EQ(got->samples_per_second, want.samples_per_second);
    EXPECT_EQ(got->seconds, want.seconds);
    EXPECT_EQ(got->unix_seconds, want.unix_seconds);
    EXPECT_EQ(got->changes, want.changes);
  }
}

TEST(Metrics, OnDiskBeforeTheWriterEnds) {
  const Folder folder;
  MetricsWriter writer(folder / "m", 0);
  writer.write(step(1));
  writer.write(step(2));
  EXPECT_EQ(steps_in(folder / "m"), (std::vector<int64_t>{1, 2}));
}

TEST(Metrics, ResumeDropsLaterAndTornLines) {
  const Folder folder;
  for (int64_t n = 1; n <= 5; ++n) {
    MetricsWriter(folder / "m", n - 1).write(step(n));  // n - 1 == 0 starts anew
  }
  const std::string whole = base::read_file(folder / "m");
  base::atomic_write(folder / "m", whole + whole.substr(0, 20));
  MetricsWriter(folder / "m", 3).write(step(4));
  EXPECT_EQ(steps_in(folder / "m"), (std::vector<int64_t>{1, 2, 3, 4}));
  MetricsWriter(folder / "m", 9);
  EXPECT_EQ(steps_in(folder / "m"), (std::vector<int64_t>{1, 2, 3, 4}));
  MetricsWriter(folder / "m", 0);
  EXPECT_TRUE(steps_in(folder / "m").empty());
  EXPECT_ERROR(MetricsWriter(folder / "no/m", 0), "no/m");
}

TEST(Metrics, WhatRepeatedStepsCostIsKept) {
  const Folder folder;
  const auto line = [](int64_t n) { return metrics_line(step(n), 10 * n) + "\n"; };
  base::atomic_write(folder / "m", line(1) + line(2) + line(3));
  MetricsWriter(folder / "m", 1);  // steps 2 and 3 are taken again
  const auto first = nlohmann::json::parse(base::read_file(folder / "m"));
  EXPECT_EQ(first["repeated_seconds"], 50);
  EXPECT_EQ(first["loss"].get<double>(), 0.1);
  EXPECT_EQ(first["wall_seconds"], 10);
  MetricsWriter(folder / "m", 1).write(step(2));
  MetricsWriter(folder / "m", 1);  // and step 2 once more
  const double repeated = nlohmann::json::parse(base::read_file(folder / "m"))["repeated_seconds"].get<double>();
  EXPECT_GE(repeated, 50);
  EXPECT_LT(repeated, 60);
}

TEST(Metrics, WallTimeIsCountedFromStepToStep) {
  const Folder folder;
  MetricsWriter writer(folder / "m", 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  writer.write(step(1));
  writer.write(step(2));
  std::istringstream content(base::read_file(folder / "m"));
  std::string first, second;
  std::getline(content, first);
  std::getline(content, second);
  EXPECT_GE(nlohmann::json::parse(first)["wall_seconds"].get<double>(), 0.02);
  EXPECT_LT(nlohmann::json::parse(second)["wall_seconds"].get<double>(), 10);
}

}  // namespace
}  // namespace hpqf::train
