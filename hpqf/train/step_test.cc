#include "hpqf/train/step.h"

#include <torch/nn/utils/convert_parameters.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "hpqf/engine/runtime.h"
#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

struct Loop {
  explicit Loop(plan::LossScaleOptions scale = {.enabled = false}, Schedule schedule = {}, double clip = 0)
      : optimizer(model->parameters(), torch::optim::SGDOptions(0.1)),
        scaler(scale, engine::describe(*model).parameters),
        step({.forward = [this](const at::Tensor& x) { return model->forward(x); },
              .loss = cross_entropy,
              .parameters = engine::describe(*model).parameters,
              .optimizer = &optimizer,
              .scaler = &scaler,
              .schedule = schedule,
              .base_lr = {0.1},
              .max_grad_norm = clip}) {}
  Mlp model;
  torch::optim::SGD optimizer;
  LossScaler scaler;
  TrainStep step;
};

Batch batch(const Data& data, int64_t first, int64_t count) {
  return {data.x.narrow(0, first, count), data.y.narrow(0, first, count)};
}

TEST(TrainStep, IsTheStepOfAPlainLoop) {
  const Data data = small_data();
  torch::manual_seed(1);
  Loop loop({.init = 1024});
  torch::manual_seed(1);
  Mlp plain;
  torch::optim::SGD optimizer(plain->parameters(), 0.1);
  for (int i = 0; i < 5; ++i) {
    const Batch b = batch(data, i * 10, 10);
    optimizer.zero_grad();
    const at::Tensor loss = cross_entropy(plain->forward(b.data), b.target);
    loss.backward();
    optimizer.step();
    const StepResult result = loop.step.run({&b, 1});
    EXPECT_TRUE(result.applied);
    EXPECT_EQ(result.loss, loss.item<double>());  // a power of two scales without rounding
    EXPECT_EQ(result.step, i + 1);
    EXPECT_EQ(result.loss_scale, 1024);
    EXPECT_GT(result.seconds, 0);
  }
  EXPECT_TRUE(loop.model->fc1->weight.equal(plain->fc1->weight));
}

TEST(TrainStep, MicroBatchesOfAnySizeGiveTheGradientOfTheirMean) {
  const Data data = small_data();
  torch::manual_seed(1);
  Loop whole;
  torch::manual_seed(1);
  Loop split;
  const Batch all = batch(data, 0, 50);
  const std::vector<Batch> parts{batch(data, 0, 20), batch(data, 20, 29), batch(data, 49, 1)};
  const StepResult a = whole.step.run({&all, 1}), b = split.step.run(parts);
  EXPECT_NEAR(a.loss, b.loss, 1e-6);
  EXPECT_EQ(b.samples, 50);
  EXPECT_LT((whole.model->fc1->weight - split.model->fc1->weight).abs().max().item<float>(), 1e-7);
}

// Summing 4096 gradients one by one in fp32 is off by up to 1.2e-4 when all have one sign (bf16: by 80 %).
TEST(TrainStep, AccumulationOf4096MicroBatches) {
  at::Tensor w = torch::zeros({3}).requires_grad_();
  torch::optim::SGD optimizer({w}, 1.0);
  LossScaler scaler({.enabled = false});
  TrainStep step({.forward = [&](const at::Tensor& x) { return x * w; },
                  .loss = [](const at::Tensor& out, const at::Tensor&) { return out.sum(); },
                  .parameters = {{"", "w", w}},
                  .optimizer = &optimizer,
                  .scaler = &scaler,
                  .base_lr = {1.0}});
  torch::manual_seed(5);
  // Equal positive values are the worst case, random ones the usual one.
  const at::Tensor x = torch::cat({torch::full({4096, 2}, 0.1f), torch::rand({4096, 1})}, 1);
  std::vector<Batch> micro;
  for (int64_t i = 0; i < 4096; ++i) micro.push_back({x.narrow(0, i, 1), {}});
  step.run(micro);
  const at::Tensor exact = x.to(at::kDouble).mean(0), got = w.neg().to(at::kDouble);
  EXPECT_LT(((got - exact) / exact).abs().max().item<double>(), 1e-5);
}

// pytorch #55585: the schedule waits for steps that are applied.
TEST(TrainStep, SchedulerDoesNotAdvanceOnSkippedSteps) {
  const Data data = small_data();
  Loop loop({.init = 1}, {.kind = ScheduleKind::cosine, .total_steps = 4});
  const Batch good = batch(data, 0, 10), bad{torch::full({10, 8}, std::nanf("")), good.target};
  EXPECT_EQ(loop.step.run({&good, 1}).lr, 0.1);
  const double second = 0.1 * (1 + std::cos(std::acos(-1.0) / 4)) / 2;
  for (int i = 0; i < 3; ++i) {
    const StepResult skipped = loop.step.run({&bad, 1});
    EXPECT_FALSE(skipped.applied);
    EXPECT_NEAR(skipped.lr, second, 1e-15);
    EXPECT_TRUE(std::isnan(skipped.loss));
    EXPECT_NE(skipped.cause.find("layer fc2"), std::string::npos) << skipped.cause;
  }
  EXPECT_NEAR(loop.step.run({&good, 1}).lr, second, 1e-15);
  EXPECT_EQ(loop.step.counters, (StepCounters{.step = 5, .applied = 2}));
  EXPECT_EQ(loop.scaler.state().skipped_total, 3);
}

TEST(TrainStep, ClipsAndReportsTheNormBefore) {
  const Data data = small_data();
  Loop loop({.init = 65536}, {}, 1e-3);
  const Batch b = batch(data, 0, 50);
  const at::Tensor before = torch::nn::utils::parameters_to_vector(loop.model->parameters()).detach().clone();
  const StepResult result = loop.step.run({&b, 1});
  const at::Tensor moved = torch::nn::utils::parameters_to_vector(loop.model->parameters()).detach() - before;
  EXPECT_GT(*result.grad_norm, 1e-3);
  EXPECT_NEAR(moved.norm().item<double>(), 0.1 * 1e-3, 1e-7);
}

// A finite input that overflows fp16 in one layer: the step is skipped with that layer and role as its cause, the layer
// leaves the format at the step boundary, and the next step is applied.
TEST(TrainStep, OverflowingLayerIsNamedAndRaised) {
  const Data data = small_data();
  Mlp model;
  {
    at::NoGradGuard no_grad;
    model->fc1->weight.fill_(3e4f);
  }
  const auto audit = std::make_shared<observe::Audit>();
  engine::Runtime runtime(*model, PrecisionPlan::uniform("fp16"), {.events = audit});
  torch::optim::SGD optimizer(model->parameters(), 1e-9);
  const auto parameters = engine::describe(*model).parameters;
  LossScaler scaler({.init = 1}, parameters);
  TrainStep step({.forward = [&](const at::Tensor& x) { return model->forward(x); },
                  .loss = cross_entropy,
                  .parameters = parameters,
                  .optimizer = &optimizer,
                  .scaler = &scaler,
                  .runtime = &runtime,
                  .audit = audit.get(),
                  .base_lr = {1e-9}});
  const Batch b{torch::ones({4, 8}), data.y.narrow(0, 0, 4)};  // fc1 gives 2.4e5: over 65504 on its way into fc2
  const StepResult first = step.run({&b, 1});
  EXPECT_FALSE(first.applied);
  EXPECT_NE(first.cause.find("input of layer fc2"), std::string::npos) << first.cause;
  EXPECT_NE(first.cause.find("overflowed fp16"), std::string::npos) << first.cause;
  ASSERT_FALSE(first.changes.empty());
  EXPECT_NE(first.changes[0].find("fc2"), std::string::npos) << first.changes[0];
  EXPECT_EQ(first.plan_epoch, 0);
  const StepResult second = step.run({&b, 1});
  EXPECT_TRUE(second.applied) << second.cause;
  EXPECT_EQ(second.plan_epoch, 1);
  EXPECT_EQ(runtime.plan().at("fc2", plan::LayerKind::linear).input.format, Format::fp32);
  EXPECT_EQ(runtime.plan().at("fc1", plan::LayerKind::linear).input.format, Format::fp16);
  EXPECT_EQ(audit->report().steps, 2);
}

TEST(TrainStep, CallersMistakes) {
  const Data data = small_data();
  Loop loop;
  EXPECT_ERROR(loop.step.run({}), "no batch");
  Loop vector_loss;
  TrainStep step({.forward = [&](const at::Tensor& x) { return vector_loss.model->forward(x); },
                  .loss = [](const at::Tensor& out, const at::Tensor&) { return out; },
                  .optimizer = &vector_loss.optimizer,
                  .scaler = &vector_loss.scaler,
                  .base_lr = {0.1}});
  const Batch b = batch(data, 0, 5);
  EXPECT_ERROR(step.run({&b, 1}), "shape [5, 3]");
}

TEST(TrainStep, BatchOfOneThroughBatchNormIsExplained) {
  torch::nn::BatchNorm1d norm(8);
  torch::optim::SGD optimizer(norm->parameters(), 0.1);
  LossScaler scaler({.enabled = false});
  TrainStep step({.forward = [&](const at::Tensor& x) { return norm->forward(x); },
                  .loss = [](const at::Tensor& out, const at::Tensor&) { return out.sum(); },
                  .optimizer = &optimizer,
                  .scaler = &scaler,
                  .base_lr = {0.1}});
  const Batch one{torch::ones({1, 8}), {}}, two{torch::ones({2, 8}), {}};
  EXPECT_ERROR(step.run({&one, 1}), "drop_last");
  EXPECT_TRUE(step.run({&two, 1}).applied);
  EXPECT_EQ(step.counters.step, 1);
}

TEST(TrainStep, ALossWithoutGraphIsANoOpWithAReason) {
  Loop loop;
  for (at::Tensor& p : loop.model->parameters()) p.requires_grad_(false);
  const Data data = small_data();
  const Batch b = batch(data, 0, 5);
  const StepResult result = loop.step.run({&b, 1});
  EXPECT_FALSE(result.applied);
  EXPECT_NE(result.cause.find("gradient"), std::string::npos);
  EXPECT_EQ(loop.scaler.state().skipped_total, 0);
}

TEST(Schedule, FactorsAreTheDefinition) {
  const Schedule constant{.warmup_steps = 4};
  EXPECT_EQ(lr_factor(constant, 0), 0.25);
  EXPECT_EQ(lr_factor(constant, 3), 1);
  EXPECT_EQ(lr_factor(constant, 1000), 1);
  const Schedule cosine{.kind = ScheduleKind::cosine, .warmup_steps = 2, .total_steps = 10, .final_factor = 0.1};
  EXPECT_EQ(lr_factor(cosine, 0), 0.5);
  EXPECT_EQ(lr_factor(cosine, 2), 1);
  EXPECT_NEAR(lr_factor(cosine, 6), 0.55, 1e-15);
  EXPECT_NEAR(lr_factor(cosine, 10), 0.1, 1e-15);
  EXPECT_NEAR(lr_factor(cosine, 99), 0.1, 1e-15);
  EXPECT_ERROR(lr_factor({.kind = ScheduleKind::cosine, .warmup_steps = 5, .total_steps = 5}, 7), "cosine");
  EXPECT_EQ(parse_schedule("cosine"), ScheduleKind::cosine);
  EXPECT_ERROR(parse_schedule("linear"), "constant, cosine");
}

}  // namespace
}  // namespace hpqf::train
