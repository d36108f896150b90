#include "hpqf/engine/range.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <memory>

#include "hpqf/engine/runtime.h"
#include "hpqf/observe/audit.h"

namespace hpqf::engine {
namespace {

struct Casts : observe::EventSink {
  int64_t overflow = 0;
  void on_cast(const observe::CastEvent& e) override { overflow += e.overflow; }
};

struct Attached {
  explicit Attached(bool on, const char* format = "fp16") {
    torch::manual_seed(3);
    model = torch::nn::Linear(32, 8);
    exact = model->weight.detach().clone();
    runtime = std::make_unique<Runtime>(
        *model, PrecisionPlan::uniform(format),
        RuntimeOptions{.events = casts, .range = {.enabled = on}, .force_implementation = "emulated"});
  }
  // Relative to the product in fp64; NaN where the result is not finite.
  double error(const at::Tensor& x) {
    const at::Tensor y = model->forward(x);
    const Passthrough fp32;
    const at::Tensor want = x.to(at::kDouble).mm(exact.to(at::kDouble).t()).add(model->bias.to(at::kDouble));
    return (y.to(at::kDouble) - want).norm().item<double>() / want.norm().item<double>();
  }
  const plan::RangeSiteState& site(plan::Role role) { return runtime->ranges().sites.at({"", role}); }

  torch::nn::Linear model{nullptr};
  at::Tensor exact;
  std::shared_ptr<Casts> casts = std::make_shared<Casts>();
  std::unique_ptr<Runtime> runtime;
};

TEST(Range, ValuesBeyondAFormatOverflowWithoutItAndFitWithIt) {
  const at::Tensor x = at::randn({5, 32}) * 1e6;
  Attached without(false);
  EXPECT_FALSE(std::isfinite(without.error(x)));
  EXPECT_GT(without.casts->overflow, 0);
  Attached with(true);
  EXPECT_LT(with.error(x), 1e-3);  // fp16 rounds to 2^-11
  EXPECT_EQ(with.casts->overflow, 0);
  Attached tiny(true);
  EXPECT_LT(tiny.error(at::randn({5, 32}) * 1e-9), 1e-3);
}

TEST(Range, Fp8WithoutScaleNeitherClipsNorSinks) {
  const at::Tensor x = at::randn({64, 32}) * 1e4;
  Attached without(false, "fp8_e4m3[none]"), with(true, "fp8_e4m3[none]");
  EXPECT_GT(without.error(x), 0.3);  // clipped at 448, and weights below 2^-9 are gone
  EXPECT_LT(with.error(x), 0.05);    // 2^-4 a value
}

TEST(Range, AJumpIsCastAgainInTheSameStepAndKnownInTheNext) {
  Attached a(true);
  const at::Tensor x = at::randn({5, 32});
  a.error(x);
  a.runtime->follow_ranges();
  const int before = a.site(plan::Role::input).exponent;
  EXPECT_LT(a.error(x * 64), 1e-3);
  EXPECT_EQ(a.casts->overflow, 0);
  a.runtime->follow_ranges();
  EXPECT_EQ(a.site(plan::Role::input).recasts, 1);
  EXPECT_EQ(a.site(plan::Role::input).exponent, before - 6);
  EXPECT_LT(a.error(x * 64), 1e-3);
  a.runtime->follow_ranges();
  EXPECT_EQ(a.site(plan::Role::input).recasts, 1);
}

TEST(Range, GradientsHaveARangeOfTheirOwn) {
  Attached a(true);
  at::Tensor x = at::randn({5, 32});
  x.requires_grad_(true);
  a.model->forward(x).backward(at::randn({5, 8}) * 1e-9);
  EXPECT_GT(x.grad().abs().max().item<double>(), 0);
  a.runtime->follow_ranges();
  EXPECT_GT(a.site(plan::Role::output_grad).exponent, 30);
  EXPECT_LT(a.site(plan::Role::input).exponent, 20);
}

TEST(Range, ValuesThatAreNotFiniteAreReportedAndLeaveNoTrace) {
  Attached a(true);
  at::Tensor x = at::randn({5, 32});
  a.error(x);
  a.runtime->follow_ranges();
  const plan::RangeState before = a.runtime->ranges();
  x[0][0] = INFINITY;
  x[1][1] = NAN;
  EXPECT_TRUE(std::isnan(a.error(x)));
  a.runtime->follow_ranges();
  EXPECT_EQ(a.site(plan::Role::input).exponent, before.sites.at({"", plan::Role::input}).exponent);
}

TEST(Range, AnEvaluationMovesNothing) {
  Attached a(true), b(true);
  const at::Tensor x = at::randn({5, 32});
  for (Attached* each : {&a, &b}) {
    each->error(x);
    each->runtime->follow_ranges();
  }
  const bool before = a.runtime->note_ranges(false);
  EXPECT_LT(a.error(x * 1000), 1e-3);
  a.runtime->note_ranges(before);
  a.runtime->follow_ranges();
  EXPECT_EQ(a.runtime->ranges(), b.runtime->ranges());
}

TEST(Range, ACachedWeightIsRoundedAnewWhenItsRangeMoves) {
  Attached a(true);
  const at::Tensor x = at::randn({5, 32});
  a.error(x);
  plan::RangeState far = a.runtime->ranges();
  a.runtime->follow_ranges();
  far = a.runtime->ranges();
  far.sites.at({"", plan::Role::weight}).exponent = -30;  // every weight below the smallest number
  a.runtime->set_ranges(far);
  EXPECT_GT(a.error(x), 0.5);
  far.sites.at({"", plan::Role::weight}).exponent = 10;
  a.runtime->set_ranges(far);
  EXPECT_LT(a.error(x), 1e-3);
}

}  // namespace
}  // namespace hpqf::engine
