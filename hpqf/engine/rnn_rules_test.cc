// What recurrent layers refuse, report and keep.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/rnn_fixture_test.h"

namespace hpqf::engine::testing {
namespace {

using observe::Pass;

std::string refusal(const Shape& s, const Numbers& n) {
  return rnn_refusal(call_of(s, n), plan::uniform_precision("bf16"));
}

TEST(RnnRefusal, NamesTheReason) {
  const Shape s;
  const Numbers good = numbers(s);
  EXPECT_EQ("", refusal(s, good));

  Numbers n = good;
  n.input = good.input.to(at::kBFloat16);
  EXPECT_EQ("fp32 tensors only, not BFloat16", refusal(s, n));
  n = good;
  n.params[1] = good.params[1].to(at::kDouble);
  EXPECT_EQ("fp32 tensors only, not Double", refusal(s, n));
  n = good;
  n.state[0] = at::empty(good.state[0].sizes(), at::kMeta);
  EXPECT_EQ("meta tensors have no values", refusal(s, n));
  n = good;
  n.input = good.input.detach().to_sparse();
  EXPECT_EQ("dense tensors only", refusal(s, n));
  n = good;
  n.input = good.input.detach()._neg_view();
  EXPECT_EQ("a lazily negated or zero tensor", refusal(s, n));
  n = good;
  n.params[0] = at::Tensor();
  EXPECT_EQ("an undefined tensor", refusal(s, n));
  LayerPrecision half_sums = plan::uniform_precision("bf16");
  half_sums.accumulate = Format::fp16;
  EXPECT_EQ("recurrent layers accumulate in fp32 only", rnn_refusal(call_of(s, good), half_sums));
}

TEST(RnnRefusal, Projections) {
  Shape s{.hidden = 8};
  Numbers n = numbers(s);
  n.params.push_back(at::randn({3, 8}));  // w_hr of proj_size 3
  n.params[1] = at::randn({32, 3});
  n.state[0] = at::randn({1, 4, 3});
  EXPECT_EQ("LSTM with projections (proj_size)", refusal(s, n));
}

TEST(RnnRefusal, ArgumentsThatDoNotFit) {
  const std::string unfit = "the arguments do not fit together; torch says which";
  const Shape s;
  const Numbers good = numbers(s);
  Numbers n = good;
  n.input = at::randn({6, 4, 7});
  EXPECT_EQ(unfit, refusal(s, n));
  n.input = at::randn({6, 5});
  EXPECT_EQ(unfit, refusal(s, n));
  n.input = at::zeros({0, 4, 5});
  EXPECT_EQ(unfit, refusal(s, n));
  n = good;
  n.params.pop_back();
  EXPECT_EQ(unfit, refusal(s, n));
  n = good;
  n.state[1] = at::randn({1, 3, 13});
  EXPECT_EQ(unfit, refusal(s, n));
  Shape packed{.steps = 2, .batch_sizes = {4, 2}};
  n = numbers(packed);
  EXPECT_EQ("", refusal(packed, n));
  n.batch_sizes = *n.batch_sizes * at::zeros({}, at::kLong) + 2;  // sums to 4, not 6
  EXPECT_EQ(unfit, refusal(packed, n));
}

TEST(Rnn, SecondDerivativesAreAnError) {
  for (Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    const Shape s{.cell = cell};
    const Numbers n = numbers(s);
    OneLayer layer(plan::uniform_precision("bf16"));
    const at::Tensor loss = ours(s, n, layer.get())[0].sum();
    try {
      torch::autograd::grad({loss}, {n.input}, {}, /*retain_graph=*/true, /*create_graph=*/true);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string::npos, e.todo().find("engine::Passthrough"));
      EXPECT_NE(std::string::npos, e.asked().find("'rnn'"));
    }
  }
}

TEST(Rnn, EmitsEventsWithFlops) {
  const Shape s{
      .cell = Cell::gru, .steps = 6, .batch = 4, .inputs = 5, .hidden = 13, .layers = 2, .bidirectional = true};
  const Numbers n = numbers(s);
  LayerPrecision p = plan::uniform_precision("bf16");
  p.wgrad = formats::parse_block_format("fp32");
  OneLayer layer(p);
  outcome(ours, s, n, layer.get());
  const auto& ops = layer.log->ops;
  ASSERT_EQ(1u + 2 * 4, ops.size());
  const double rows = 24, gates = 39, columns = 2 * (5 + 13) + 2 * (26 + 13);  // both directions of both layers
  EXPECT_EQ(2 * rows * gates * columns, ops[0].flops);
  double dgrad = 0, wgrad = 0;
  for (const auto& e : ops) {
    EXPECT_EQ("rnn", e.layer);
    EXPECT_EQ("gru", e.op);
    EXPECT_EQ(e.requested_a, e.effective_a);
    EXPECT_EQ(e.requested_b, e.effective_b);
    EXPECT_GT(e.nanoseconds, 0);
    EXPECT_GT(e.bytes, 0);
    EXPECT_EQ(e.pass == Pass::wgrad ? "torch" : "emulated", e.implementation);
    EXPECT_EQ(e.pass == Pass::wgrad ? Format::fp32 : Format::bf16, e.effective_a.format);
    if (e.pass == Pass::dgrad) dgrad += e.flops;
    if (e.pass == Pass::wgrad) wgrad += e.flops;
  }
  EXPECT_EQ(Pass::forward, ops[0].pass);
  EXPECT_EQ(ops[0].flops, dgrad);
  EXPECT_EQ(ops[0].flops, wgrad);
}

TEST(Rnn, FrozenWeightsAndDataInputsCostNothing) {
  const Shape s{.cell = Cell::lstm, .steps = 6, .batch = 4, .inputs = 5, .hidden = 13};
  Numbers n = numbers(s);
  n.input = n.input.detach();
  for (auto& p : n.params) p = p.detach();
  OneLayer layer(plan::uniform_precision("bf16"));
  ours(s, n, layer.get())[0].sum().backward();  // only the initial states ask for gradients
  ASSERT_EQ(2u, layer.log->ops.size());
  EXPECT_EQ(Pass::dgrad, layer.log->ops[1].pass);
  EXPECT_EQ(2.0 * 24 * 52 * 13, layer.log->ops[1].flops);
  EXPECT_TRUE(n.state[0].grad().defined() && n.state[1].grad().defined());
  EXPECT_FALSE(n.input.grad().defined());
}

TEST(Rnn, ReportsCastsThatOverflow) {
  const Shape s{.cell = Cell::rnn_relu, .steps = 2, .batch = 1, .inputs = 1, .hidden = 1, .biases = false};
  Numbers n = numbers(s);
  n.params[0] = at::ones({1, 1});
  n.params[1] = at::zeros({1, 1});
  n.input = at::ones({2, 1, 1}) * 70000;  // above 65504
  n.state[0] = at::ones({1, 1, 1}) * 70000;
  OneLayer layer(plan::uniform_precision("fp16"));
  ours(s, n, layer.get());
  ASSERT_EQ(2u, layer.log->casts.size());  // x over all steps, then h over all steps
  EXPECT_EQ(2, layer.log->casts[0].overflow);
  EXPECT_EQ(2, layer.log->casts[1].elements);
  EXPECT_EQ(1, layer.log->casts[1].overflow);      // h0
  EXPECT_EQ(1, layer.log->casts[1].nonfinite_in);  // h1 = relu(inf + 0 * inf) is NaN
}

TEST(Rnn, WritingOverASavedOutputIsNoticed) {
  const Shape s{.cell = Cell::rnn_tanh};
  const Numbers n = numbers(s);
  OneLayer layer(plan::uniform_precision("bf16"));
  auto out = ours(s, n, layer.get());
  const at::Tensor loss = out[0].sum();
  {
    at::NoGradGuard no_grad;
    out[0].mul_(2);
  }
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(Rnn, BackwardFollowsThePlanOfItsForward) {
  const Shape s;
  const Numbers n = numbers(s);
  OneLayer bf16(plan::uniform_precision("bf16"));
  const Outcome expected = outcome(ours, s, n, bf16.get());
  auto layer = std::make_unique<OneLayer>(plan::uniform_precision("bf16"));
  const auto out = ours(s, n, layer->get());
  layer->state->precisions.push_back(plan::uniform_precision("fp32"));
  layer->state->layers[0].current = &layer->state->precisions.back();
  layer.reset();  // the graph keeps the state alive
  at::Tensor loss = out[0].sum() + out[1].sum() + out[2].sum();
  loss.backward();
  const at::Tensor moved = n.params[0].grad().clone();
  n.params[0].mutable_grad().reset();
  const auto again = ours(s, n, bf16.get());
  (again[0].sum() + again[1].sum() + again[2].sum()).backward();
  EXPECT_TRUE(moved.equal(n.params[0].grad()));
}

}  // namespace
}  // namespace hpqf::engine::testing
