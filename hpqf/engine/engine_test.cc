// The engine on C++ models: what is intercepted, what stays bit-identical, what the gradients are.
#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <thread>

#include "hpqf/base/error.h"
#include "hpqf/engine/census.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

namespace nn = torch::nn;
using at::Tensor;

struct Net : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d bn{nullptr};
  nn::Linear fc{nullptr};
  Net() {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).stride(2)));
    bn = register_module("bn", nn::BatchNorm2d(8));
    fc = register_module("fc", nn::Linear(8 * 4 * 4, 5));
  }
  Tensor forward(const Tensor& x) { return fc->forward(bn->forward(conv->forward(x)).relu().flatten(1)); }
};

std::vector<Tensor> gradients(nn::Module& m) {
  std::vector<Tensor> g;
  for (auto& p : m.parameters()) g.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
  m.zero_grad();
  return g;
}

template <class Run>
void expect_identical(nn::Module& m, Run run) {
  Tensor plain_loss = run();
  plain_loss.backward();
  auto plain = gradients(m);
  Runtime runtime(m, PrecisionPlan());
  Tensor loss = run();
  loss.backward();
  auto ours = gradients(m);
  EXPECT_TRUE(loss.equal(plain_loss));
  ASSERT_EQ(plain.size(), ours.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(plain[i].defined(), ours[i].defined());
    if (plain[i].defined()) {
      EXPECT_TRUE(plain[i].equal(ours[i])) << i;
    }
  }
}

TEST(Fp32Plan, ConvNetIsBitIdentical) {
  torch::manual_seed(1);
  Net net;
  Tensor x = at::randn({4, 3, 8, 8});
  expect_identical(net, [&] { return net.forward(x).square().sum(); });
}

TEST(Fp32Plan, RecurrentAndAttentionModelsAreBitIdentical) {
  torch::manual_seed(2);
  nn::LSTM lstm(nn::LSTMOptions(6, 8).num_layers(2).bidirectional(true));
  Tensor x = at::randn({5, 3, 6});
  expect_identical(*lstm, [&] { return std::get<0>(lstm->forward(x)).square().sum(); });
  nn::GRU gru(nn::GRUOptions(6, 8));
  expect_identical(*gru, [&] { return std::get<0>(gru->forward(x)).square().sum(); });
  nn::TransformerEncoderLayer encoder(nn::TransformerEncoderLayerOptions(8, 2).dropout(0));
  Tensor s = at::randn({5, 3, 8});
  expect_identical(*encoder, [&] { return encoder->forward(s).square().sum(); });
}

// Everything written out: operands rounded, products in fp32, the output gradient rounded for both backward products,
// the bias gradient from the unrounded one.
TEST(Bf16Plan, LinearFollowsTheDefinition) {
  torch::manual_seed(3);
  auto low = [](const Tensor& t) { return t.to(at::kBFloat16).to(at::kFloat); };
  for (auto shape : {std::vector<int64_t>{7, 16}, std::vector<int64_t>{2, 3, 16}}) {
    nn::Linear fc(16, 9);
    Tensor x = at::randn(shape).requires_grad_();
    auto out = shape;
    out.back() = 9;
    Tensor g = at::randn(out);
    {
      Runtime runtime(*fc, PrecisionPlan::uniform("bf16"));
      fc->forward(x).backward(g);
    }
    Tensor xq = low(x.detach()).reshape({-1, 16}), wq = low(fc->weight.detach()), gq = low(g).reshape({-1, 9});
    EXPECT_TRUE(at::allclose(x.grad().reshape({-1, 16}), gq.mm(wq), 1e-6, 1e-6));
    EXPECT_TRUE(at::allclose(fc->weight.grad(), gq.t().mm(xq), 1e-6, 1e-6));
    EXPECT_TRUE(at::allclose(fc->bias.grad(), g.reshape({-1, 9}).sum(0), 1e-6, 1e-6));
  }
}

TEST(SplitPlan, DgradAndWgradFollowTheirOwnFormats) {
  torch::manual_seed(4);
  auto low = [](const Tensor& t) { return t.to(at::kBFloat16).to(at::kFloat); };
  LayerPrecision p = plan::uniform_precision("bf16");
  p.wgrad = {};  // weight gradient in fp32 on unrounded operands
  nn::Conv2d conv(nn::Conv2dOptions(4, 6, 3).padding(1));
  Tensor x = at::randn({2, 4, 5, 5}).requires_grad_(), g = at::randn({2, 6, 5, 5});
  {
    Runtime runtime(*conv, PrecisionPlan({{"*", p}}));
    conv->forward(x).backward(g);
  }
  Tensor x2 = x.detach().clone().requires_grad_(), w2 = low(conv->weight.detach()).requires_grad_();
  at::conv2d(x2, w2, {}, 1, 1).backward(low(g));
  EXPECT_TRUE(at::allclose(x.grad(), x2.grad(), 1e-6, 1e-6));
  Tensor x3 = x.detach(), w3 = conv->weight.detach().clone().requires_grad_();
  at::conv2d(x3, w3, {}, 1, 1).backward(g);
  EXPECT_TRUE(at::allclose(conv->weight.grad(), w3.grad(), 1e-6, 1e-6));
  EXPECT_TRUE(at::allclose(conv->bias.grad(), g.sum({0, 2, 3}), 1e-5, 1e-5));
}

TEST(SplitPlan, LayersWithoutBias) {
  LayerPrecision p = plan::uniform_precision("bf16");
  p.wgrad = {};
  nn::Linear fc(nn::LinearOptions(8, 4).bias(false));
  Tensor x = at::randn({3, 8}).requires_grad_(), g = at::randn({3, 4});
  Runtime runtime(*fc, PrecisionPlan({{"*", p}}));
  fc->forward(x).backward(g);
  Passthrough off;
  EXPECT_TRUE(at::allclose(fc->weight.grad(), g.t().mm(x.detach()), 1e-6, 1e-6));
}

TEST(Audit, CountsForwardAndBackwardFlopsOfRealOps) {
  Net net;
  auto audit = std::make_shared<observe::Audit>();
  {
    Runtime runtime(net, PrecisionPlan::with_sensitive("bf16", {"fc"}), {.events = audit});
    net.forward(at::randn({4, 3, 8, 8})).square().sum().backward();
  }
  double conv_forward = 0, conv_wgrad = 0, conv_dgrad = 0, fc_dgrad = 0;
  for (const auto& row : audit->report().rows) {
    if (row.layer == "conv" && row.pass == observe::Pass::forward) {
      conv_forward += row.flops;
      EXPECT_EQ(row.effective_a, "bf16");
    }
    if (row.layer == "conv" && row.pass == observe::Pass::wgrad) conv_wgrad += row.flops;
    if (row.layer == "conv" && row.pass == observe::Pass::dgrad) conv_dgrad += row.flops;
    if (row.layer == "fc" && row.pass == observe::Pass::dgrad) {
      fc_dgrad += row.flops;
      EXPECT_EQ(row.effective_a, "fp32");
    }
  }
  EXPECT_DOUBLE_EQ(conv_forward, 2.0 * 4 * 8 * 4 * 4 * 3 * 9);
  EXPECT_DOUBLE_EQ(conv_wgrad, conv_forward);
  EXPECT_EQ(conv_dgrad, 0);  // the input needs no gradient, so that product never ran
  EXPECT_DOUBLE_EQ(fc_dgrad, 2.0 * 4 * 128 * 5);
}

TEST(Census, SeesOpsAfterABackwardThatThrew) {
  enter_counted();  // what the timer of such a node leaves behind
  OpCensus census;
  at::randn({64}).mul(2);
  bool seen = false;
  for (const auto& op : census.finish()) seen |= op.op == "aten::mul";
  EXPECT_TRUE(seen);
}

TEST(Strict, NativeRefusesEmulationNamingLayerAndReason) {
  Net net;
  Tensor x = at::randn({1, 3, 8, 8});
  net.eval();
  Runtime formats(net, PrecisionPlan::uniform("int8[row]"), {.strict = Strict::formats});
  EXPECT_NO_THROW(net.forward(x));
  Net other;
  Runtime native(other, PrecisionPlan::uniform("int8[row]"), {.strict = Strict::native});
  try {
    other.forward(x);
    FAIL() << "emulated int8[row] passed strict=native";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("conv"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("emulated"), std::string::npos) << e.what();
  }
}

TEST(Scopes, DetachRestoresAndReattachWorks) {
  Net net;
  net.eval();
  at::NoGradGuard no_grad;
  Tensor x = at::randn({2, 3, 8, 8}), plain = net.forward(x);
  for (int i = 0; i < 3; ++i) {
    Tensor low;
    {
      Runtime runtime(net, PrecisionPlan::uniform("int4"));
      low = net.forward(x);
    }
    EXPECT_FALSE(low.equal(plain));
    EXPECT_TRUE(net.forward(x).equal(plain));
  }
}

TEST(Scopes, TwoModelsKeepTheirPlans) {
  torch::manual_seed(5);
  nn::Linear a(8, 8), b(8, 8);
  at::NoGradGuard no_grad;
  Tensor x = at::randn({4, 8}), pa = a->forward(x), pb = b->forward(x);
  Runtime ra(*a, PrecisionPlan::uniform("int4")), rb(*b, PrecisionPlan());
  EXPECT_FALSE(a->forward(x).equal(pa));
  EXPECT_TRUE(b->forward(x).equal(pb));
}

TEST(Scopes, BackwardFollowsThePlanAfterDetachAndOnOtherThreads) {
  nn::Linear fc(16, 4);
  Tensor x = at::randn({3, 16}), g = at::randn({3, 4}), y;
  {
    Runtime runtime(*fc, PrecisionPlan::uniform("bf16"));
    y = fc->forward(x);
  }
  std::thread([&] { y.backward(g); }).join();
  Tensor want = g.to(at::kBFloat16).to(at::kFloat).t().mm(x.to(at::kBFloat16).to(at::kFloat));
  EXPECT_TRUE(at::allclose(fc->weight.grad(), want, 1e-6, 1e-6));
}

TEST(Scopes, PlainThreadIsOutsideAndScopeEnters) {
  nn::Linear fc(16, 4);
  at::NoGradGuard outer;
  Tensor x = at::randn({3, 16}), plain = fc->forward(x), outside, inside;
  Runtime runtime(*fc, PrecisionPlan::uniform("int4"));
  std::thread([&] {
    at::NoGradGuard g;
    outside = fc->forward(x);
  }).join();
  std::thread([&] {
    at::NoGradGuard g;
    Scope scope;
    inside = fc->forward(x);
  }).join();
  EXPECT_TRUE(outside.equal(plain));
  EXPECT_TRUE(inside.equal(fc->forward(x)));
  EXPECT_FALSE(inside.equal(plain));
}

TEST(Scopes, ExceptionsInForwardLeaveTheScopeIntact) {
  nn::Linear fc(16, 4);
  Runtime runtime(*fc, PrecisionPlan::uniform("bf16"));
  EXPECT_THROW(fc->forward(at::randn({3, 5})), c10::Error);
  Tensor x = at::randn({3, 16});
  at::NoGradGuard no_grad;
  Tensor want = at::linear(x.to(at::kBFloat16).to(at::kFloat), fc->weight.to(at::kBFloat16).to(at::kFloat), fc->bias);
  EXPECT_TRUE(at::allclose(fc->forward(x), want, 1e-6, 1e-6));
}

TEST(Scopes, PassthroughRunsTorchAlone) {
  nn::Linear fc(16, 4);
  at::NoGradGuard no_grad;
  Tensor x = at::randn({3, 16}), plain = fc->forward(x);
  Runtime runtime(*fc, PrecisionPlan::uniform("int4"));
  Passthrough pass;
  EXPECT_TRUE(fc->forward(x).equal(plain));
}

TEST(Plans, ApplyTakesEffectAndUnknownLayersAreNamed) {
  Net net;
  net.eval();
  at::NoGradGuard no_grad;
  Tensor x = at::randn({2, 3, 8, 8}), plain = net.forward(x);
  Runtime runtime(net, PrecisionPlan::uniform("int4"));
  runtime.apply(PrecisionPlan());
  EXPECT_TRUE(net.forward(x).equal(plain));
  try {
    runtime.apply(PrecisionPlan::with_sensitive("bf16", {"conv9"}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("conv"), std::string::npos);
  }
}

TEST(Native, ForcedTorchPathsRunOnCpu) {
  torch::manual_seed(6);
  nn::Linear fc(32, 16);
  Tensor x = at::randn({32, 32}).requires_grad_();
  Tensor want = fc->forward(x).detach();
  struct Case {
    const char* name;
    const char* plan;
    double bound;
  };
  for (auto c : {Case{"torch.cast", "bf16", 0.02}, Case{"torch._int_mm", "int8[row]", 0.03},
                 Case{"torch._scaled_mm", "fp8", 0.06}}) {
    auto audit = std::make_shared<observe::Audit>();
    LayerPrecision p = plan::uniform_precision(c.plan);
    Runtime runtime(*fc, PrecisionPlan({{"*", p}}), {.events = audit, .force_implementation = c.name});
    Tensor y = fc->forward(x);
    y.sum().backward();
    EXPECT_LT((y - want).norm().item<double>() / want.norm().item<double>(), c.bound) << c.name;
    EXPECT_EQ(audit->report().rows.at(0).implementation, c.name);
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
    x.mutable_grad() = Tensor();
  }
}

}  // namespace
}  // namespace hpqf::engine
