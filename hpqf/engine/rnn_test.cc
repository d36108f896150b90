// Recurrent layers against torch's own operators (fp32) and against a step-by-step oracle (rounded).
#include "hpqf/engine/rnn.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/engine/rnn_fixture_test.h"

namespace hpqf::engine::testing {
namespace {

constexpr Cell kCells[] = {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (Cell cell : kCells) {
    all.push_back({.cell = cell});
    all.push_back({.cell = cell, .layers = 2, .bidirectional = true, .batch_first = true});
    all.push_back({.cell = cell, .layers = 3, .biases = false});
    all.push_back({.cell = cell, .steps = 1, .batch = 1, .inputs = 1, .hidden = 1});
    all.push_back({.cell = cell, .steps = 1, .batch = 3, .inputs = 17, .hidden = 9, .bidirectional = true});
    all.push_back({.cell = cell, .steps = 7, .batch = 1, .hidden = 8, .layers = 2, .batch_first = true});
    all.push_back({.cell = cell, .steps = 5, .layers = 2, .bidirectional = true, .batch_sizes = {4, 4, 3, 1, 1}});
    all.push_back({.cell = cell, .steps = 3, .batch = 5, .biases = false, .batch_sizes = {5, 2, 1}});
    all.push_back({.cell = cell, .steps = 1, .batch = 2, .bidirectional = true, .batch_sizes = {2}});
  }
  return all;
}

TEST(Rnn, InFp32EqualsTorch) {
  for (const Shape& s : shapes()) {
    const Numbers n = numbers(s);
    OneLayer layer(plan::uniform_precision("fp32"));
    EXPECT_LT(distance(outcome(ours, s, n, layer.get()), outcome(torch_op, s, n, layer.get())), 1e-5) << to_string(s);
  }
}

// Two correct programs differ in the last fp32 bit of a sum, and where that bit decides a rounding to 16 bits the
// difference jumps to 1e-3 and spreads (seen for about every fifth seed). A wrong or missing rounding differs so for
// every seed, so the closest of a few seeds decides.
double closest_to_oracle(const Shape& s, const LayerPrecision& precision) {
  double closest = INFINITY;
  for (uint64_t seed = 1; seed <= 8 && closest > 1e-5; ++seed) {
    const Numbers n = numbers(s, seed);
    OneLayer layer(precision);
    closest = std::min(closest, distance(outcome(ours, s, n, layer.get()), outcome(oracle, s, n, layer.get())));
  }
  return closest;
}

double distance_to_fp32(const Shape& s) {
  const Numbers n = numbers(s);
  OneLayer bf16(plan::uniform_precision("bf16")), fp32(plan::uniform_precision("fp32"));
  return distance(outcome(ours, s, n, bf16.get()), outcome(torch_op, s, n, fp32.get()));
}

TEST(Rnn, InBf16EqualsTheOracle) {
  for (const Shape& s : shapes()) {
    EXPECT_LT(closest_to_oracle(s, plan::uniform_precision("bf16")), 1e-5) << to_string(s);
    // The comparison above would see a missing rounding: the distance to fp32 is far larger.
    if (s.hidden > 1) {
      EXPECT_GT(distance_to_fp32(s), 2e-4) << to_string(s);
    }
  }
}

// Every combination of rounded and unrounded operands takes its own path through saved tensors.
TEST(Rnn, MixedFormatsEqualTheOracle) {
  for (Cell cell : kCells) {
    for (int bits = 0; bits < 16; ++bits) {
      LayerPrecision p = plan::uniform_precision("fp32");
      if (bits & 1) p.input = formats::parse_block_format("bf16");
      if (bits & 2) p.weight = formats::parse_block_format("fp16");
      if (bits & 4) p.dgrad = formats::parse_block_format("bf16");
      if (bits & 8) p.wgrad = formats::parse_block_format("fp16");
      const Shape s{.cell = cell,
                    .steps = 3,
                    .batch = 3,
                    .inputs = 4,
                    .hidden = 7,
                    .bidirectional = true,
                    .batch_sizes = {3, 2, 1}};
      EXPECT_LT(closest_to_oracle(s, p), 1e-5) << to_string(s) << " formats " << bits;
    }
  }
}

// The arithmetic of block formats is tested with the kernels. Here: blocks that end inside rows of 70 and 65 run in all
// four cells, and cost what 8 and 12 bits cost, not more.
TEST(Rnn, BlockFormatsStayClose) {
  for (Cell cell : kCells) {
    const Shape s{.cell = cell, .steps = 5, .batch = 9, .inputs = 70, .hidden = 65, .bidirectional = true};
    const Numbers n = numbers(s, 3);
    OneLayer fp32(plan::uniform_precision("fp32"));
    const Outcome exact = outcome(torch_op, s, n, fp32.get());
    auto off = [&](const char* format) {
      OneLayer layer(plan::uniform_precision(format));
      return distance(outcome(ours, s, n, layer.get()), exact);
    };
    const double int8 = off("int8"), fp8 = off("fp8"), int8_tensor = off("int8[tensor]"), int12 = off("int12");
    // A relu near zero switches its whole gradient on or off.
    const double slack = cell == Cell::rnn_relu ? 4 : 1;
    EXPECT_LT(int12, 0.01 * slack) << to_string(s);
    EXPECT_LT(int8, 0.1 * slack) << to_string(s);
    EXPECT_LT(int8_tensor, 0.2 * slack) << to_string(s);
    EXPECT_LT(fp8, 0.3 * slack) << to_string(s);
    EXPECT_LT(2 * int12, int8) << to_string(s);
    EXPECT_GT(int12, 1e-5) << to_string(s);
  }
}

TEST(Rnn, ChainedCallsEqualOneCall) {
  const Shape whole{.cell = Cell::gru, .steps = 5, .batch = 3, .inputs = 70, .hidden = 65};
  Shape one = whole;
  one.steps = 1;
  const Numbers n = numbers(whole);
  OneLayer layer(plan::uniform_precision("int8"));
  at::NoGradGuard no_grad;
  const at::Tensor expected = ours(whole, n, layer.get())[0];
  Numbers part = n;
  for (int64_t t = 0; t < whole.steps; ++t) {
    part.input = n.input.narrow(0, t, 1);
    const auto out = ours(one, part, layer.get());
    EXPECT_LT((out[0][0] - expected[t]).abs().max().item<float>(), 1e-5) << t;
    part.state = {out[1]};
  }
}

TEST(Rnn, DropoutDrawsTheNumbersTorchDraws) {
  for (Cell cell : kCells) {
    for (const Shape& s : {Shape{.cell = cell, .layers = 3, .dropout = 0.4}, Shape{.cell = cell,
                                                                             .steps = 3,
                                                                             .layers = 2,
                                                                             .bidirectional = true,
                                                                             .batch_sizes = {4, 2, 1},
                                                                             .dropout = 0.4}}) {
      const Numbers n = numbers(s);
      OneLayer layer(plan::uniform_precision("fp32"));
      auto seeded = [&](Forward forward) {
        auto generator = at::globalContext().defaultGenerator(at::kCPU);
        generator.set_current_seed(17);
        return outcome(forward, s, n, layer.get());
      };
      EXPECT_LT(distance(seeded(ours), seeded(torch_op)), 1e-5) << to_string(s);
    }
  }
}

TEST(Rnn, EmptyBatch) {
  for (Cell cell : kCells) {
    const Shape s{.cell = cell, .steps = 3, .batch = 0, .layers = 2, .bidirectional = true};
    const Numbers n = numbers(s);
    OneLayer layer(plan::uniform_precision("bf16"));
    const Outcome o = outcome(ours, s, n, layer.get());
    EXPECT_EQ(o.outputs[0].sizes(), at::IntArrayRef({3, 0, 2 * s.hidden}));
    EXPECT_EQ(o.outputs[1].sizes(), at::IntArrayRef({4, 0, s.hidden}));
    for (size_t i = 0; i < n.params.size(); ++i) {
      const at::Tensor& g = o.gradients[1 + n.state.size() + i];
      EXPECT_EQ(g.sizes(), n.params[i].sizes());
      EXPECT_EQ(0, g.abs().sum().item<float>());
    }
  }
}

TEST(Rnn, StridedInputAndExpandedGradient) {
  for (Cell cell : kCells) {
    const Shape s{.cell = cell, .steps = 6, .batch = 4, .inputs = 5};
    Numbers n = numbers(s);
    n.input = at::randn({5, 4, 12}).permute({2, 1, 0}).slice(0, 0, 12, 2).detach().set_requires_grad(true);
    ASSERT_FALSE(n.input.is_contiguous());
    Numbers dense = n;
    dense.input = n.input.detach().contiguous().set_requires_grad(true);
    OneLayer layer(plan::uniform_precision("bf16"));
    const auto a = ours(s, n, layer.get())[0], b = ours(s, dense, layer.get())[0];
    EXPECT_TRUE(a.equal(b));
    a.sum().backward();  // its gradient is an expanded scalar
    (b * 1).sum().backward();
    EXPECT_TRUE(n.input.grad().equal(dense.input.grad()));
    EXPECT_GT(n.input.grad().abs().max().item<float>(), 0);
  }
}

TEST(Rnn, NonFiniteInputsStayInTheirSequence) {
  const Shape s{.cell = Cell::lstm, .steps = 4, .batch = 3};
  const Numbers n = numbers(s);
  OneLayer layer(plan::uniform_precision("bf16"));
  at::NoGradGuard no_grad;
  const at::Tensor clean = ours(s, n, layer.get())[0];
  n.input[2][1][0].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor out = ours(s, n, layer.get())[0];
  EXPECT_TRUE(out.narrow(0, 0, 2).equal(clean.narrow(0, 0, 2)));
  EXPECT_TRUE(out.select(1, 0).equal(clean.select(1, 0)) && out.select(1, 2).equal(clean.select(1, 2)));
  EXPECT_TRUE(out[2][1].isnan().all().item<bool>() && out[3][1].isnan().all().item<bool>());
}

}  // namespace
}  // namespace hpqf::engine::testing
