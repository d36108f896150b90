#include "hpqf/train/gradient_monitor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "hpqf/base/file.h"
#include "hpqf/observe/profile/profiler.h"
#include "hpqf/train/fixtures_test.h"
#include "hpqf/train/trainer.h"

namespace hpqf::train {
namespace {

using Json = nlohmann::json;

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  std::istringstream content(base::read_file(path));
  for (std::string line; std::getline(content, line);) rows.push_back(Json::parse(line));
  return rows;
}

std::set<int64_t> steps_of(const std::vector<Json>& rows) {
  std::set<int64_t> steps;
  for (const Json& row : rows) steps.insert(row["step"].get<int64_t>());
  return steps;
}

struct Scene {
  Scene() { torch::manual_seed(7); }
  Data data = small_data();
  Mlp model{Mlp(0.0)};
  TensorLoader loader() const { return TensorLoader(data.x, data.y, {.batch_size = 8, .seed = 2, .n_classes = 3}); }
};

TEST(GradientMonitor, TheRunFolderHoldsItsRowsAndAResumeGoesOn) {
  const Folder folder;
  Scene s;
  TensorLoader loader = s.loader();
  const auto options = [&](int64_t steps, bool resume) {
    TrainOptions o{.steps = steps, .optimizer_spec = {.name = "sgd", .lr = 0.05}, .out_dir = folder.path()};
    o.resume = resume;
    o.monitor_gradients = 2;
    o.monitor = observe::MonitorOptions{.every = 3};
    return o;
  };
  {
    MixedPrecisionTrainer trainer(s.model, {.precision = "fp16", .max_grad_norm = 1e-3, .seed = 5});
    trainer.train(loader, cross_entropy, options(6, false));
  }
  const auto rows = rows_of(folder / "gradients.jsonl");
  EXPECT_EQ(steps_of(rows), (std::set<int64_t>{2, 4, 6}));
  double largest = 0;
  for (const Json& row : rows) {
    if (row["subject"] == "gradient") largest = std::max(largest, row["norm"].get<double>());
    if (row["subject"] == "weight") EXPECT_GT(row["update_ratio"].get<double>(), 0) << row;
    if (row["subject"] == "weight") EXPECT_GT(row["sqnr_db"].get<double>(), 50) << row;  // fp16 keeps 11 bits
    EXPECT_EQ(row["format"], "fp16");
  }
  EXPECT_GT(largest, 1e-3);  // before clipping
  EXPECT_EQ(steps_of(rows_of(folder / "monitor.jsonl")), (std::set<int64_t>{3, 6}));
  {
    MixedPrecisionTrainer trainer(s.model, {.precision = "fp16", .max_grad_norm = 1e-3, .seed = 5});
    trainer.train(loader, cross_entropy, options(9, true));
  }
  EXPECT_EQ(steps_of(rows_of(folder / "gradients.jsonl")), (std::set<int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(steps_of(rows_of(folder / "monitor.jsonl")), (std::set<int64_t>{3, 6, 9}));
}

TEST(GradientMonitor, WatchingChangesNothing) {
  const auto weights = [](int64_t every) {
    Scene s;
    TensorLoader loader = s.loader();
    MixedPrecisionTrainer trainer(s.model, {.precision = "int8", .seed = 5});
    TrainOptions options{.steps = 6};
    options.monitor_gradients = every;
    if (every > 0) options.monitor = observe::MonitorOptions{.every = every};
    trainer.train(loader, cross_entropy, std::move(options));
    return s.model->fc1->weight.detach().clone();
  };
  EXPECT_TRUE(weights(0).equal(weights(1)));
}

TEST(GradientMonitor, AnAlertStopsTheTrainingAndIsHeard) {
  Scene s;
  TensorLoader loader = s.loader();
  MixedPrecisionTrainer trainer(s.model, {.precision = "bf16"});
  TrainOptions options{.steps = 20};
  options.monitor = observe::MonitorOptions{.every = 1};
  options.monitor->rules = {{.rule = "r",
                             .metric = "precision/loss_scale",
                             .comparison = observe::Comparison::above,
                             .threshold = 0,
                             .samples = 4,
                             .action = observe::AlertAction::stop}};
  int heard = 0;
  options.on_alert = [&](const observe::Alert&) { ++heard; };
  const TrainSummary summary = trainer.train(loader, cross_entropy, std::move(options));
  EXPECT_TRUE(summary.stopped);
  EXPECT_EQ(summary.steps, 4);
  EXPECT_EQ(heard, 1);
}

TEST(GradientMonitor, WhatFailsIsANoteAndNoException) {
  Scene s;
  TensorLoader loader = s.loader();
  MixedPrecisionTrainer trainer(s.model, {.precision = "bf16"});
  GradientMonitor monitor({.every = 1, .path = "/dev/full"});
  std::vector<engine::LayerParameter> parameters{{"fc1", "weight", s.model->fc1->weight}};
  s.model->fc1->weight.mutable_grad() = at::Tensor(s.model->fc1->weight.detach().clone());
  for (int64_t step = 1; step <= 3; ++step) {
    monitor.gradients(step, parameters, nullptr, {});
    monitor.updated(parameters);
  }
  EXPECT_EQ(monitor.take_notes().size(), 1u);
  ASSERT_EQ(monitor.latest().size(), 2u);
  EXPECT_EQ(*monitor.latest()[0].update_ratio, 0);  // nothing stepped
  EXPECT_ERROR(GradientMonitor({.every = 0}), "every 0 steps");
}

TEST(Profiler, IsASinkOfTheTrainer) {
  Scene s;
  TensorLoader loader = s.loader();
  const auto profiler = std::make_shared<observe::Profiler>();
  MixedPrecisionTrainer trainer(s.model, {.precision = "fp32", .events = profiler});
  profiler->start();
  trainer.train(loader, cross_entropy, {.steps = 2});
  profiler->stop();
  double forward = 0;
  for (const observe::AuditRow& row : profiler->report().audit.rows)
    if (row.pass == observe::Pass::forward) forward += row.flops;
  EXPECT_EQ(forward, 2 * (2.0 * 8 * 8 * 16 + 2.0 * 8 * 16 * 3));  // 2 M N K of two layers, two steps
}

}  // namespace
}  // namespace hpqf::train
