// Convolutions through the integer kernels: the three products, layouts, what is refused.
#include "hpqf/engine/integer_conv.h"

#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/conv.h>
#include <torch/utils.h>

#include <cmath>

#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/observe/audit.h"

namespace hpqf::engine {
namespace {

namespace nn = torch::nn;
using at::Tensor;

class IntegerConv : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::best_gemm_path()) GTEST_SKIP() << "no integer GEMM on this CPU";
    torch::manual_seed(2);
  }
};

double error(const Tensor& x, const Tensor& exact) {
  return ((x.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

struct Case {
  int64_t in, out, kernel, stride, padding, dilation, groups, size;
};

TEST_F(IntegerConv, AllThreeProductsAreWithinTheFormatInBothLayouts) {
  for (const Case& c : {Case{32, 48, 3, 1, 1, 1, 1, 9}, Case{64, 32, 1, 1, 0, 1, 1, 7}, Case{32, 64, 3, 2, 1, 1, 1, 8},
                        Case{64, 64, 3, 1, 2, 2, 2, 8}})
    for (bool last : {false, true})
      for (auto [format, bound] : {std::pair{"int8", 0.04}, {"int12", 0.003}}) {
        nn::Conv2d conv(nn::Conv2dOptions(c.in, c.out, c.kernel)
                            .stride(c.stride)
                            .padding(c.padding)
                            .dilation(c.dilation)
                            .groups(c.groups));
        Tensor x = at::randn({3, c.in, c.size, c.size});
        if (last) x = x.contiguous(at::MemoryFormat::ChannelsLast);
        x.requires_grad_();
        const Tensor x64 = x.detach().to(at::kDouble).requires_grad_(),
                     w64 = conv->weight.detach().to(at::kDouble).requires_grad_();
        const Tensor y64 =
            at::conv2d(x64, w64, conv->bias.detach().to(at::kDouble), c.stride, c.padding, c.dilation, c.groups);
        const Tensor g = at::randn(y64.sizes());
        y64.backward(g.to(at::kDouble));
        auto audit = std::make_shared<observe::Audit>();
        Tensor y;
        {
          Runtime runtime(*conv, PrecisionPlan::uniform(format), {.events = audit});
          y = conv->forward(x);
          y.backward(g);
        }
        EXPECT_EQ(y.is_contiguous(at::MemoryFormat::ChannelsLast) && !y.is_contiguous(), last);
        EXPECT_LT(error(y, y64.detach()), bound) << format;
        EXPECT_LT(error(x.grad(), x64.grad()), bound) << format << " stride " << c.stride;
        EXPECT_LT(error(conv->weight.grad(), w64.grad()), bound) << format;
        EXPECT_LT(error(conv->bias.grad(), g.sum({0, 2, 3}).to(at::kDouble)), 1e-5);
        EXPECT_GT(error(y, y64.detach()), 1e-5) << "ran in fp32?";
        for (const auto& row : audit->report().rows) EXPECT_EQ(row.implementation, "hpqf.integer") << row.reason;
      }
}

TEST_F(IntegerConv, OneDimensional) {
  nn::Conv1d conv(nn::Conv1dOptions(32, 40, 5).padding(2).stride(2));
  Tensor x = at::randn({2, 32, 30}).requires_grad_();
  const Tensor want = at::conv1d(x.detach(), conv->weight.detach(), conv->bias.detach(), 2, 2).to(at::kDouble);
  Runtime runtime(*conv, PrecisionPlan::uniform("int12"));
  Tensor y = conv->forward(x);
  EXPECT_LT(error(y.detach(), want), 0.003);
  y.sum().backward();
  EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
}

TEST_F(IntegerConv, WhatDoesNotPayIsRefusedWithReasonAndEmulated) {
  struct Refused {
    nn::Conv2dOptions options;
    const char* reason;
  };
  for (const Refused& r : {Refused{nn::Conv2dOptions(16, 64, 3), "16 channels"},
                           Refused{nn::Conv2dOptions(32, 32, 3).groups(32), "depthwise"},
                           Refused{nn::Conv2dOptions(32, 32, 3).padding(torch::kSame), "a word"}}) {
    nn::Conv2d conv(r.options);
    auto audit = std::make_shared<observe::Audit>();
    Runtime runtime(*conv, PrecisionPlan::uniform("int8"), {.events = audit});
    conv->forward(at::randn({1, r.options.in_channels(), 8, 8}));
    const auto row = audit->report().rows.at(0);
    EXPECT_EQ(row.implementation, "emulated");
    EXPECT_NE(row.reason.find(r.reason), std::string::npos) << row.reason;
  }
}

TEST_F(IntegerConv, NanReachesWhatDependsOnIt) {
  nn::Conv2d conv(nn::Conv2dOptions(32, 32, 3).padding(1));
  auto audit = std::make_shared<observe::Audit>();
  Runtime runtime(*conv, PrecisionPlan::uniform("int8"), {.events = audit});
  Tensor x = at::randn({2, 32, 8, 8});
  x[1][3][4][4] = NAN;
  const Tensor y = conv->forward(x);
  EXPECT_TRUE(y[0].isfinite().all().item<bool>());
  EXPECT_EQ(y[1][0].isnan().sum().item<int64_t>(), 9);
  EXPECT_EQ(audit->take_observations(0).casts.at(0).nonfinite_in, 1);
}

}  // namespace
}  // namespace hpqf::engine
