// GELU, SiLU, softmax and LayerNorm on our own loops: the same functions as torch's, on only under integer plans.
#include "hpqf/engine/elementwise.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <functional>

#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/observe/audit.h"

namespace hpqf::engine {
namespace {

using at::Tensor;

struct Case {
  const char* name;
  std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)> op;
};
const Case kCases[] = {
    {"gelu", [](const Tensor& x, const Tensor&, const Tensor&) { return at::gelu(x); }},
    {"gelu", [](const Tensor& x, const Tensor&, const Tensor&) { return at::gelu(x, "tanh"); }},
    {"silu", [](const Tensor& x, const Tensor&, const Tensor&) { return at::silu(x); }},
    {"softmax", [](const Tensor& x, const Tensor&, const Tensor&) { return at::softmax(x, -1); }},
    {"log_softmax", [](const Tensor& x, const Tensor&, const Tensor&) { return at::log_softmax(x, 1); }},
    {"layer_norm",
     [](const Tensor& x, const Tensor& w, const Tensor& b) { return at::layer_norm(x, {x.size(-1)}, w, b); }},
    {"layer_norm", [](const Tensor& x, const Tensor& w, const Tensor&) { return at::layer_norm(x, {x.size(-1)}, w); }},
    {"layer_norm", [](const Tensor& x, const Tensor&, const Tensor&) { return at::layer_norm(x, {x.size(-1)}); }},
};

struct Results {
  Tensor y;
  std::vector<Tensor> gradients, second;
};
Results run(const Case& c, const Tensor& data, const Tensor& g) {
  torch::manual_seed(3);
  Tensor x = data.clone().requires_grad_(), w = at::randn({data.size(-1)}).requires_grad_(),
         b = at::randn({data.size(-1)}).requires_grad_();
  Results r;
  r.y = c.op(x, w, b);
  r.gradients = torch::autograd::grad({r.y}, {x, w, b}, {g}, true, false, true);
  const auto first = torch::autograd::grad({c.op(x, w, b)}, {x}, {g}, true, true);
  r.second = torch::autograd::grad({first[0].pow(2).sum()}, {x}, {}, true, false, true);
  return r;
}

void expect_close(const Tensor& a, const Tensor& b, const char* what) {
  ASSERT_EQ(a.defined(), b.defined()) << what;
  if (a.defined()) {
    EXPECT_TRUE(at::allclose(a, b, 2e-5, 2e-6)) << what << " " << (a - b).abs().max().item<double>();
  }
}

TEST(Elementwise, EqualsTorchForwardBackwardAndTwice) {
  if (!kernels::best_gemm_path()) GTEST_SKIP() << "our loops serve only where the integer GEMM does";
  torch::nn::Linear fc(4, 4);
  for (const Case& c : kCases)
    for (const Tensor& data : {at::randn({37, 50}), at::randn({1, 5}), at::randn({6, 40}).slice(1, 0, 33)}) {
      const Tensor g = at::randn(data.sizes());
      const Results want = run(c, data, g);
      auto audit = std::make_shared<observe::Audit>();
      Results got;
      {
        Runtime runtime(*fc, PrecisionPlan::uniform("int8"), {.events = audit});
        got = run(c, data, g);
      }
      expect_close(got.y, want.y, c.name);
      for (size_t i = 0; i < 3; ++i) expect_close(got.gradients[i], want.gradients[i], c.name);
      EXPECT_TRUE(at::allclose(got.second[0], want.second[0], 1e-3, 1e-4)) << c.name;
      bool ours = false;
      for (const auto& row : audit->report().rows) ours |= row.op == c.name && row.implementation == "hpqf.elementwise";
      EXPECT_TRUE(ours) << c.name;
    }
}

TEST(Elementwise, OtherPlansKeepTorchsBits) {
  torch::nn::Linear fc(4, 4);
  const Tensor data = at::randn({37, 50}), g = at::randn({37, 50});
  for (const Case& c : kCases) {
    const Results want = run(c, data, g);
    for (const char* format : {"fp32", "bf16", "fp16", "int8[row]"}) {
      Runtime runtime(*fc, PrecisionPlan::uniform(format));
      const Results got = run(c, data, g);
      EXPECT_TRUE(got.y.equal(want.y)) << c.name << format;
      EXPECT_TRUE(got.gradients[0].equal(want.gradients[0])) << c.name << format;
    }
  }
}

TEST(Elementwise, OtherAxesAndTypesAreLeftToTorch) {
  torch::nn::Linear fc(4, 4);
  Runtime runtime(*fc, PrecisionPlan::uniform("int8"));
  const Tensor x = at::randn({5, 6, 7});
  Tensor want;
  {
    Passthrough off;
    want = at::softmax(x, 1);
  }
  EXPECT_TRUE(at::softmax(x, 1).equal(want));
  EXPECT_EQ(at::softmax(x, -1, at::kDouble).scalar_type(), at::kDouble);
  EXPECT_EQ(at::gelu(x.to(at::kDouble)).scalar_type(), at::kDouble);
  EXPECT_EQ(at::layer_norm(x, {6, 7}).sizes(), x.sizes());
  EXPECT_EQ(at::gelu(at::randn({0, 3})).numel(), 0);
}

}  // namespace
}  // namespace hpqf::engine
