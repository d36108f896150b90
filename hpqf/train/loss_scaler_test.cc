#include "hpqf/train/loss_scaler.h"

#include <torch/nn/modules/embedding.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>

#include "hpqf/train/fixtures_test.h"

namespace hpqf::train {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

at::Tensor parameter(std::vector<float> values) { return torch::tensor(values).requires_grad_(); }
at::Tensor with_gradient(const at::Tensor& p, const at::Tensor& gradient) {
  p.mutable_grad() = gradient;
  return p;
}
torch::optim::SGD sgd(std::vector<at::Tensor> parameters, double lr = 1) {
  return torch::optim::SGD(std::move(parameters), torch::optim::SGDOptions(lr));
}

TEST(LossScaler, GradientsOfAScaledLossComeBackExact) {
  at::Tensor p = parameter({1, -2, 3});
  LossScaler scaler({.init = 1024});
  scaler.scale((p * p).sum()).backward();
  EXPECT_TRUE(p.grad().equal(torch::tensor({2048.f, -4096.f, 6144.f})));
  auto optimizer = sgd({p}, 0.5);
  const GradientHealth health = scaler.unscale_and_check(optimizer);
  EXPECT_TRUE(health.finite);
  EXPECT_FALSE(health.repeated);
  EXPECT_EQ(health.gradients, 1);
  EXPECT_TRUE(p.grad().equal(torch::tensor({2.f, -4.f, 6.f})));
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_TRUE(p.equal(torch::zeros({3})));
}

TEST(LossScaler, UnscalingTwiceChangesNothingAndSaysSo) {
  at::Tensor p = with_gradient(parameter({0}), torch::tensor({8.f}));
  LossScaler scaler({.init = 4});
  auto optimizer = sgd({p});
  EXPECT_FALSE(scaler.unscale_and_check(optimizer).repeated);
  EXPECT_TRUE(scaler.unscale_and_check(optimizer).repeated);
  EXPECT_EQ(p.grad().item<float>(), 2);
  EXPECT_TRUE(scaler.step(optimizer).applied);
  EXPECT_EQ(p.item<float>(), -2);
  EXPECT_ERROR(scaler.step(optimizer), "second time");
  scaler.update();
  EXPECT_TRUE(scaler.step(optimizer).applied);
}

// Lightning #9330: clipping to norm 1 while the gradient is still scaled leaves a norm of 1 / 65536.
TEST(LossScaler, ClipBeforeUnscaleImpossible) {
  for (const bool unscale_first : {true, false}) {
    at::Tensor p = with_gradient(parameter({0, 0}), torch::tensor({3.f, 4.f}) * 65536);
    LossScaler scaler;
    auto optimizer = sgd({p});
    if (unscale_first) scaler.unscale_and_check(optimizer);
    EXPECT_DOUBLE_EQ(scaler.clip_grad_norm(optimizer, 1.0), 5.0);
    EXPECT_TRUE(torch::allclose(p.grad(), torch::tensor({0.6f, 0.8f}), 1e-6));
    EXPECT_TRUE(scaler.step(optimizer));
    EXPECT_NEAR(p.norm().item<float>(), 1, 1e-6);
  }
}

TEST(LossScaler, ClipLeavesSmallAndHugeNormsRight) {
  at::Tensor p = with_gradient(parameter({0, 0}), torch::tensor({3e25f, 4e25f}));  // squares overflow fp32
  LossScaler scaler({.enabled = false});
  auto optimizer = sgd({p});
  EXPECT_NEAR(scaler.clip_grad_norm(optimizer, 10) / 5e25, 1, 1e-6);
  EXPECT_NEAR(p.grad().norm().item<float>(), 10, 1e-4);
  EXPECT_NEAR(scaler.clip_grad_norm(optimizer, 100), 10, 1e-4);
  EXPECT_NEAR(p.grad().norm().item<float>(), 10, 1e-4);
  EXPECT_ERROR(scaler.clip_grad_norm(optimizer, 0), "norm 0");
  EXPECT_ERROR(scaler.clip_grad_norm(optimizer, kNan), "norm nan");
}

TEST(LossScaler, NanGradientSkipsTheStepAndNamesTheLayer) {
  Mlp model;
  std::vector<LayerParameter> names;
  for (const auto& item : model->named_parameters()) {
    const size_t dot = item.key().rfind('.');
    names.push_back({item.key().substr(0, dot), item.key().substr(dot + 1), item.value()});
    with_gradient(item.value(), torch::ones_like(item.value()));
  }
  model->fc1->weight.mutable_grad()[0][0] = kNan;
  model->fc2->weight.mutable_grad()[1][2] = kInf;
  model->fc2->weight.mutable_grad()[2][2] = -kInf;
  auto optimizer = sgd(model->parameters());
  const at::Tensor before = model->fc1->bias.detach().clone();
  LossScaler scaler({.init = 1}, names);
  const GradientHealth health = scaler.unscale_and_check(optimizer);
  EXPECT_FALSE(health.finite);
  EXPECT_EQ(health.nonfinite, 3);
  EXPECT_EQ(health.layer, "fc2");  // backward gets there first
  EXPECT_EQ(health.parameter, "weight");
  EXPECT_EQ(health.layers, (std::vector<std::string>{"fc1", "fc2"}));
  const StepStatus status = scaler.step(optimizer);
  EXPECT_FALSE(status.applied);
  EXPECT_NE(status.cause.find("layer fc2"), std::string::npos) << status.cause;
  EXPECT_NE(status.cause.find("gradient of weight"), std::string::npos) << status.cause;
  EXPECT_TRUE(model->fc1->bias.equal(before));
  scaler.update();
  EXPECT_EQ(scaler.state().skipped_total, 1);
}

// pytorch #96755: finite while scaled, infinite after unscaling with a scale under 1.
TEST(LossScaler, WhatCountsIsTheUnscaledValue) {
  at::Tensor p = with_gradient(parameter({0}), torch::tensor({1e38f}));
  LossScaler scaler({.init = 1.0 / 1024, .floor = 1.0 / 1024});
  auto optimizer = sgd({p});
  EXPECT_FALSE(scaler.step(optimizer).applied);
}

// pytorch #40497: repeated overflow must not sink the scale under its floor.
TEST(LossScaler, ScaleFloorUnderRepeatedOverflow) {
  at::Tensor p = parameter({1});
  auto optimizer = sgd({p});
  LossScaler scaler({.init = 64, .floor = 1});
  for (int i = 0; i < 200; ++i) {
    with_gradient(p, torch::full({1}, kInf));
    EXPECT_FALSE(scaler.step(optimizer));
    scaler.update();
    ASSERT_GE(scaler.scale_value(), 1);
  }
  EXPECT_EQ(scaler.scale_value(), 1);
  EXPECT_EQ(p.item<float>(), 1);
  with_gradient(p, torch::ones({1}));
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_EQ(p.item<float>(), 0);
}

// pytorch #98828: a tiny loss lets the scale grow for ever; it must stay finite.
TEST(LossScaler, CapWithTinyLoss) {
  at::Tensor p = parameter({1});
  auto optimizer = sgd({p}, 1e-3);
  LossScaler scaler({.growth_interval = 1});
  for (int i = 0; i < 200; ++i) {
    optimizer.zero_grad();
    scaler.scale((p * 1e-30).sum()).backward();
    EXPECT_TRUE(scaler.step(optimizer));
    scaler.update();
  }
  EXPECT_EQ(scaler.scale_value(), 16777216);
}

// accelerate #328.
TEST(LossScaler, OptimizerWithoutGradientsIsANoOpWithAReason) {
  at::Tensor p = parameter({1}), q = parameter({2});
  auto none = sgd({p}), some = sgd({q});
  with_gradient(q, torch::tensor({65536.f}));
  LossScaler scaler({.growth_interval = 1});
  const StepStatus status = scaler.step(none);
  EXPECT_FALSE(status.applied);
  EXPECT_NE(status.cause.find("gradient"), std::string::npos);
  const plan::LossScaleState before = scaler.state();
  EXPECT_EQ(scaler.update(), "");
  EXPECT_EQ(scaler.state(), before);  // neither clean nor bad
  EXPECT_EQ(scaler.clip_grad_norm(none, 1), 0);
  EXPECT_FALSE(scaler.step(none).applied);
  EXPECT_TRUE(scaler.step(some).applied);
  EXPECT_EQ(q.item<float>(), 1);
}

// optax #1754: eps 1e-8 vanishes in fp16; in fp32 a zero gradient moves nothing and makes no NaN.
TEST(LossScaler, AdamWithZeroGradientStaysFinite) {
  at::Tensor p = parameter({1, 2});
  torch::optim::Adam adam({p}, torch::optim::AdamOptions(1e-3).eps(1e-8));
  LossScaler scaler;
  for (int i = 0; i < 5; ++i) {
    with_gradient(p, torch::zeros({2}));
    EXPECT_TRUE(scaler.step(adam));
    scaler.update();
  }
  EXPECT_TRUE(p.equal(torch::tensor({1.f, 2.f})));
}

TEST(LossScaler, SparseGradients) {
  torch::nn::Embedding embedding(torch::nn::EmbeddingOptions(10, 2).sparse(true));
  const at::Tensor rows = torch::tensor({3, 3, 7});
  embedding(rows).sum().backward();
  const at::Tensor expected = embedding->weight.grad().to_dense().clone();
  embedding->weight.mutable_grad() = at::Tensor();
  LossScaler scaler({.init = 256});
  auto optimizer = sgd(embedding->parameters());
  scaler.scale(embedding(rows).sum()).backward();
  EXPECT_NEAR(scaler.clip_grad_norm(optimizer, 1e6), expected.norm().item<double>(), 1e-5);
  EXPECT_TRUE(embedding->weight.grad().to_dense().equal(expected));
  scaler.clip_grad_norm(optimizer, 1);
  EXPECT_NEAR(embedding->weight.grad().to_dense().norm().item<double>(), 1, 1e-6);
  EXPECT_TRUE(scaler.step(optimizer));
  scaler.update();
  embedding->weight.mutable_grad() = at::Tensor();
  scaler.scale(embedding(rows).sum() * kInf).backward();
  EXPECT_FALSE(scaler.step(optimizer).applied);
}

TEST(LossScaler, ExpandedStridedHalfDoubleEmptyAndSharedGradients) {
  LossScaler scaler({.init = 4});
  std::vector<LayerParameter> all;
  const auto add = [&](const std::string& name, const at::Tensor& gradient) {
    at::Tensor p = torch::zeros(gradient.sizes(), gradient.options()).requires_grad_();
    p.mutable_grad() = gradient;
    all.push_back({"", name, p});
    return p;
  };
  const at::Tensor expanded = add("expanded", torch::full({1, 1}, 8.f).expand({5, 3}));
  const at::Tensor strided = add("strided", torch::full({6, 4}, 8.f).t());
  const at::Tensor gaps = add("gaps", torch::full({6, 4}, 8.f).slice(1, 0, 4, 2));
  const at::Tensor half = add("half", torch::full({3}, 8, at::kHalf));
  const at::Tensor wide = add("wide", torch::full({3}, 8, at::kDouble));
  const at::Tensor empty = add("empty", torch::zeros({0, 3}));
  const at::Tensor one = add("one", torch::full({}, 8.f));
  const at::Tensor shared = torch::full({2}, 8.f);
  const at::Tensor a = add("a", shared), b = add("b", shared);
  const GradientHealth health = scaler.unscale_and_check(all);
  EXPECT_TRUE(health.finite);
  EXPECT_EQ(health.gradients, 9);
  for (const LayerParameter& p : all) EXPECT_TRUE(p.tensor.grad().eq(2).all().item<bool>()) << p.name;
}

TEST(LossScaler, SeveralOptimizersShareOneScaler) {
  at::Tensor p = parameter({1}), q = parameter({1});
  auto first = sgd({p}), second = sgd({q});
  LossScaler scaler({.init = 8});
  scaler.scale(p.sum()).backward();
  EXPECT_TRUE(scaler.step(first));
  scaler.scale((q * p.detach()).sum() * kNan).backward();
  EXPECT_FALSE(scaler.step(second));
  scaler.update();
  EXPECT_EQ(scaler.state().bad_steps, 1);
  EXPECT_EQ(p.item<float>(), 0);
  EXPECT_EQ(q.item<float>(), 1);
}

TEST(LossScaler, ScalingAfterUnscalingIsRefused) {
  at::Tensor p = parameter({1});
  LossScaler scaler({.init = 8});
  scaler.scale(p.sum()).backward();
  auto optimizer = sgd({p});
  scaler.unscale_and_check(optimizer);
  EXPECT_ERROR(scaler.scale(p.sum()), "were unscaled");
  scaler.step(optimizer);
  EXPECT_NO_THROW(scaler.scale(p.sum()));
}

TEST(LossScaler, HalfLossDoesNotOverflow) {
  const at::Tensor loss = LossScaler().scale(torch::full({}, 3.0, at::kHalf));
  EXPECT_EQ(loss.item<float>(), 3 * 65536.f);
}

TEST(LossScaler, StateRoundTripsAndBadStateIsRefused) {
  LossScaler scaler;
  const plan::LossScaleState state{
      .scale = 512, .clean_steps = 7, .bad_steps = 1, .best_scale = 1024, .skipped_total = 3};
  scaler.set_state(state);
  EXPECT_EQ(scaler.state(), state);
  EXPECT_ERROR(scaler.set_state({.scale = 0}), "finite scale over 0");
  EXPECT_ERROR(scaler.set_state({.scale = std::nan("")}), "finite scale over 0");
  EXPECT_EQ(scaler.state(), state);
}

}  // namespace
}  // namespace hpqf::train
