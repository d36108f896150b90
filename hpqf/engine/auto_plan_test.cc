// The plan behind "auto": recorded shapes, measured, settled at a step boundary.
#include "hpqf/engine/auto_plan.h"

#include <ATen/Context.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hpqf/engine/auto_choice.h"
#include "hpqf/engine/rates.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::engine {
namespace {

namespace nn = torch::nn;
using at::Tensor;

struct Net : nn::Module {
  nn::Conv2d conv{register_module("conv", nn::Conv2d(nn::Conv2dOptions(32, 32, 3).padding(1)))};
  nn::Linear fc1{register_module("fc1", nn::Linear(32 * 16, 64))};
  nn::LSTM lstm{register_module("lstm", nn::LSTM(64, 32))};
  nn::Linear head{register_module("head", nn::Linear(32, 10))};
  Tensor forward(const Tensor& x) {
    Tensor h = at::relu(fc1(at::relu(conv(x)).flatten(1)));
    return head(std::get<0>(lstm(h.unsqueeze(0)))[0]);
  }
};

class AutoPlan : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("hpqf-auto-" + std::to_string(::getpid()));
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(AutoPlan, StaysFp32UntilShapesWereSeenThenEveryLayerHasAMeasuredReason) {
  Net net;
  Runtime runtime(net, auto_plan({"fc1"}));
  EXPECT_TRUE(unsettled(runtime.plan()));
  EXPECT_EQ(settle(runtime), "") << "nothing seen yet";
  EXPECT_TRUE(unsettled(runtime.plan()));
  const Tensor x = at::randn({4, 32, 4, 4});
  Tensor want;
  {
    Passthrough off;
    want = net.forward(x);
  }
  EXPECT_TRUE(net.forward(x).equal(want)) << "the first step is torch's";
  const auto random = at::globalContext().defaultGenerator(at::kCPU).get_state().clone();
  const std::string text = settle(runtime);
  EXPECT_TRUE(at::globalContext().defaultGenerator(at::kCPU).get_state().equal(random))
      << "measuring must not move the user's random numbers: a resumed run would differ";
  EXPECT_NE(text.find("auto: "), std::string::npos) << text;
  EXPECT_FALSE(unsettled(runtime.plan()));
  EXPECT_EQ(settle(runtime), "") << "once";
  EXPECT_EQ(runtime.plan().at("fc1").reason, "sensitive: asked by the user");
  EXPECT_TRUE(runtime.plan().at("fc1").all_fp32());
  for (const char* layer : {"conv", "head", "lstm"}) {
    const auto p = runtime.plan().at(layer);
    if (kernels::best_gemm_path()) {
      EXPECT_NE(p.reason.find("int12: "), std::string::npos) << layer << ": " << p.reason;
    }
    EXPECT_NE(p.weight.format, layer == std::string("lstm") ? Format::tf32 : Format::int8)
        << layer << ": first and last layer keep 12 bits";
  }
  EXPECT_NO_THROW(net.forward(x).sum().backward());
  // As JSON and back it is still settled: a checkpoint keeps the choice.
  EXPECT_FALSE(unsettled(PrecisionPlan::from_json(runtime.plan().to_json())));
  EXPECT_TRUE(unsettled(PrecisionPlan::from_json(auto_plan().to_json())));
}

TEST_F(AutoPlan, WhatWouldOnlyBeEmulatedIsNeverTimedNorChosen) {
  const Rate few =
      rate({"conv", {4, 16, 8, 8}, {16, 16, 3, 3}, {1, 1, 1, 1, 1, 1, 1}}, formats::default_block(Format::int8));
  EXPECT_EQ(few.ratio, 0);
  if (kernels::best_gemm_path()) {
    EXPECT_NE(few.refused.find("16 channels"), std::string::npos) << few.refused;
  }
  EXPECT_FALSE(rate({"linear", {16, 32}, {32, 32}}, formats::default_block(Format::int4)).refused.empty());
}

TEST_F(AutoPlan, RatesAreKeptAndADamagedFileIsMeasuredAnew) {
  const ProblemShape shape{"linear", {64, 96}, {80, 96}, {}, true, 1};
  const Rate first = rate(shape, formats::default_block(Format::int12));
  EXPECT_GT(first.seconds, 0);
  EXPECT_EQ(rate(shape, formats::default_block(Format::int12)).seconds, first.seconds) << "measured once";
  EXPECT_EQ(shape_class(shape).a, (std::vector<int64_t>{64, 96}));
  EXPECT_EQ(shape_class({"linear", {5000, 96}, {80, 96}}).a.front(), 1024);
  EXPECT_EQ(shape_class({"conv", {100, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1, 1, 1, 1}}).a.front(), 16);
}

// Each layer's scores in nats; `scale` makes one layer more sensitive than another.
plan::LayerSensitivity scored(const std::string& name, double scale) {
  plan::LayerSensitivity layer{name, plan::LayerKind::linear, 512 * 512, 512, 512 * 512, std::nullopt, {}};
  for (const plan::Operand operand : {plan::Operand::weight, plan::Operand::input})
    for (const BlockFormat& f : auto_formats())
      layer.scores.push_back({.operand = operand,
                              .format = f,
                              .score = scale * std::exp2(-2.0 * formats::info(f.format).bits),
                              .terms = 256});
  return layer;
}

TEST_F(AutoPlan, TheLeastTimeWithinTheLimitOfTheLoss) {
  const ProblemShape shape{"linear", {512, 512}, {512, 512}, {}, false, 2.0 * 512 * 512 * 512};
  const std::vector<std::pair<std::string, const ProblemShape*>> seen{{"calm", &shape}, {"touchy", &shape}};
  plan::Sensitivity s;
  s.layers = {scored("calm", 1), scored("touchy", 1e6)};
  const Candidates possible = candidates(shape);
  double fastest = 1;
  for (const TimedFormat& f : possible.formats) fastest = std::max(fastest, f.ratio);

  const Allocated nothing = allocate_by_loss(seen, s, 0), all = allocate_by_loss(seen, s, 1e9);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(nothing.choices[i].format, "fp32");
    EXPECT_EQ(all.choices[i].ratio, fastest);
  }
  for (const double limit : {1e-5, 1e-3, 0.1, 10.0, 100.0}) {
    const Allocated some = allocate_by_loss(seen, s, limit);
    EXPECT_LE(some.loss, limit);
    EXPECT_GE(some.choices[0].ratio, some.choices[1].ratio) << "the calm layer goes lower first";
  }
  if (possible.formats.size() > 1) {
    EXPECT_NE(nothing.choices[0].reason.find("nats"), std::string::npos) << nothing.choices[0].reason;
  }
  const Allocated unknown = allocate_by_loss({{"other", &shape}}, s, 1e9);
  EXPECT_EQ(unknown.choices[0].format, "fp32");
  EXPECT_NE(unknown.choices[0].reason.find("not measured"), std::string::npos) << unknown.choices[0].reason;
}

}  // namespace
}  // namespace hpqf::engine
