// Linear layers through the integer GEMM: the three products, the weights' packed copies, what the audit says.
#include "hpqf/engine/integer_gemm.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cmath>

#include "hpqf/engine/rounding.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/observe/audit.h"

namespace hpqf::engine {
namespace {

namespace nn = torch::nn;
using at::Tensor;

class IntegerLinear : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernels::best_gemm_path()) GTEST_SKIP() << "no integer GEMM on this CPU";
    torch::manual_seed(1);
    clear_weight_cache();
  }
};

double error(const Tensor& x, const Tensor& exact) {
  return ((x.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

struct Gradients {
  Tensor y, x, weight, bias;
};
Gradients exact(const Tensor& x, const nn::Linear& fc, const Tensor& g) {
  Passthrough off;
  const auto w = fc->weight.detach().to(at::kDouble), b = fc->bias.detach().to(at::kDouble);
  const auto x2 = x.detach().to(at::kDouble), g2 = g.to(at::kDouble);
  const auto rows = g2.reshape({-1, g2.size(-1)});
  return {x2.matmul(w.t()) + b, g2.matmul(w), rows.t().mm(x2.reshape({-1, x2.size(-1)})), rows.sum(0)};
}

TEST_F(IntegerLinear, AllThreeProductsAreWithinTheFormat) {
  for (auto [format, bound] :
       {std::pair{"int8", 0.025}, {"int12", 0.0015}, {"int8[1x32]", 0.025}, {"int12[1x128]", 0.002}})
    for (auto sizes : {std::vector<int64_t>{48, 80}, {3, 7, 80}, {1, 80}}) {
      nn::Linear fc(80, 33);
      Tensor x = at::randn(sizes).requires_grad_();
      auto audit = std::make_shared<observe::Audit>();
      Runtime runtime(*fc, PrecisionPlan::uniform(format), {.events = audit});
      Tensor y = fc->forward(x);
      const Tensor g = at::randn(y.sizes());
      y.backward(g);
      const Gradients want = exact(x, fc, g);
      EXPECT_LT(error(y, want.y), bound) << format << sizes;
      EXPECT_LT(error(x.grad(), want.x), bound) << format << sizes;
      EXPECT_LT(error(fc->weight.grad(), want.weight), bound * 1.2) << format << sizes;
      EXPECT_LT(error(fc->bias.grad(), want.bias), 1e-6) << "the bias gradient sums unrounded gradients";
      EXPECT_GT(error(y, want.y), 1e-5) << "ran in fp32?";
      const auto rows = audit->report().rows;
      ASSERT_EQ(rows.size(), 3u) << "forward, dgrad, wgrad";
      for (const auto& row : rows) {
        EXPECT_EQ(row.implementation, "hpqf.integer");
        EXPECT_NE(row.reason.find(kernels::best_gemm_path()->name), std::string::npos) << row.reason;
      }
    }
}

TEST_F(IntegerLinear, WeightsThatLieTransposedAndFunctionalCalls) {
  nn::Linear fc(64, 40);
  Tensor x = at::randn({20, 64}).requires_grad_();
  Runtime runtime(*fc, PrecisionPlan::uniform("int12"));
  const Tensor g = at::randn({20, 40});
  x.matmul(fc->weight.t()).backward(g);
  const Tensor dx = x.grad().clone(), dw = fc->weight.grad().clone();
  x.mutable_grad() = Tensor();
  fc->weight.mutable_grad() = Tensor();
  nn::functional::linear(x, fc->weight).backward(g);
  EXPECT_TRUE(x.grad().equal(dx));
  EXPECT_TRUE(fc->weight.grad().equal(dw));
}

TEST_F(IntegerLinear, StridesOfInputAndGradientDoNotMatter) {
  nn::Linear fc(32, 24);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  const Tensor base = at::randn({32, 50});
  auto run = [&](Tensor x, const Tensor& g) {
    x = x.detach().requires_grad_();
    fc->weight.mutable_grad() = Tensor();
    Tensor y = fc->forward(x);
    y.backward(g);
    return std::vector<Tensor>{y.detach(), x.grad().clone(), fc->weight.grad().clone()};
  };
  const Tensor g = at::randn({24, 50});
  const auto strided = run(base.t(), g.t()), dense = run(base.t().contiguous(), g.t().contiguous());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_TRUE(strided[i].equal(dense[i])) << i;
  const auto expanded = run(base.t(), at::ones({1, 1}).expand({50, 24}));  // what sum().backward() hands down
  EXPECT_TRUE(expanded[2].isfinite().all().item<bool>());
}

TEST_F(IntegerLinear, TheSameGradientRoundsTheSameAndAnotherDifferently) {
  nn::Linear fc(64, 64);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  const Tensor x = at::randn({64, 64});
  auto gradient = [&](const Tensor& g) {
    fc->weight.mutable_grad() = Tensor();
    fc->forward(x).backward(g);
    return fc->weight.grad().clone();
  };
  const Tensor g = at::randn({64, 64});
  EXPECT_TRUE(gradient(g).equal(gradient(g.clone()))) << "resume and recomputation rely on it";
  // The mean over many gradients that differ in one far bit converges: the noise is fresh each time.
  Tensor sum = at::zeros({64, 64}, at::kDouble);
  double single = 0;
  const Tensor want = g.to(at::kDouble).t().mm(x.to(at::kDouble));
  for (int i = 0; i < 64; ++i) {
    Tensor near = g.clone();
    near.index_put_({0, 0}, g.index({0, 0}) * (1 + 1e-6 * i));
    const Tensor d = gradient(near);
    single += error(d, want) / 64;
    sum += d;
  }
  EXPECT_LT(error(sum / 64, want), single) << "x itself is rounded to nearest, so some error stays";
}

TEST_F(IntegerLinear, WeightsArePackedOncePerContentAndUse) {
  nn::Linear fc(64, 64);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  Tensor x = at::randn({16, 64}).requires_grad_();
  for (int i = 0; i < 3; ++i) fc->forward(x).sum().backward();
  EXPECT_EQ(weight_cache_stats().misses, 2) << "one for the forward pass, one for dgrad";
  EXPECT_EQ(weight_cache_stats().hits, 4);
  const Tensor before = fc->forward(x).detach();
  fc->weight.data().mul_(2.0);  // moves no version
  EXPECT_TRUE(((fc->forward(x) - fc->bias) * 0.5 + fc->bias).allclose(before, 1e-4, 1e-5));
  EXPECT_EQ(weight_cache_stats().misses, 3);
}

TEST_F(IntegerLinear, EachGradientHasItsOwnFormat) {
  nn::Linear fc(64, 48);
  LayerPrecision p = plan::uniform_precision("int8");
  p.dgrad = {};
  Tensor x = at::randn({32, 64}).requires_grad_();
  auto audit = std::make_shared<observe::Audit>();
  Runtime runtime(*fc, PrecisionPlan({{"*", p}}), {.events = audit});
  Tensor y = fc->forward(x);
  const Tensor g = at::randn(y.sizes());
  y.backward(g);
  const Gradients want = exact(x, fc, g);
  EXPECT_LT(error(x.grad(), want.x), 1e-6);
  EXPECT_GT(error(fc->weight.grad(), want.weight), 1e-4);
}

TEST_F(IntegerLinear, NanAndInfinityReachResultGradientsAndAudit) {
  for (float poison : {NAN, INFINITY}) {
    nn::Linear fc(32, 16);
    auto audit = std::make_shared<observe::Audit>();
    Runtime runtime(*fc, PrecisionPlan::uniform("int8"), {.events = audit});
    Tensor x = at::randn({4, 32});
    x[2][5] = poison;
    Tensor y = fc->forward(x);
    EXPECT_TRUE(y[2].isnan().all().item<bool>());
    EXPECT_TRUE(y[1].isfinite().all().item<bool>());
    Tensor g = at::ones({4, 16});
    g[0][3] = poison;
    y.backward(g);
    EXPECT_FALSE(fc->weight.grad().isfinite().all().item<bool>());
    int64_t seen = 0;
    for (const auto& cast : audit->take_observations(0).casts) seen += cast.nonfinite_in;
    EXPECT_EQ(seen, 1) << "the input's; the input needs no gradient, so dgrad did not run";
  }
}

TEST_F(IntegerLinear, EmptyBatchAndOneRow) {
  nn::Linear fc(32, 16);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  Tensor x = at::randn({0, 32}).requires_grad_();
  Tensor y = fc->forward(x);
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{0, 16}));
  y.sum().backward();
  EXPECT_EQ(fc->weight.grad().abs().sum().item<double>(), 0);
  EXPECT_EQ(fc->forward(at::randn({32})).dim(), 1);
}

TEST_F(IntegerLinear, SecondDerivativesAreRefusedInWords) {
  nn::Linear fc(32, 16);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  Tensor x = at::randn({4, 32}).requires_grad_();
  Tensor y = fc->forward(x).pow(2).sum();
  EXPECT_ANY_THROW(y.backward({}, true, true));
}

}  // namespace
}  // namespace hpqf::engine
