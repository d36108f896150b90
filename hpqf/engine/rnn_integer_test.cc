// Recurrent layers whose products run on the integer GEMM.
#include <gtest/gtest.h>

#include "hpqf/engine/rnn_fixture_test.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::engine::testing {
namespace {

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    all.push_back({.cell = cell, .steps = 6, .batch = 8, .inputs = 40, .hidden = 36});
    all.push_back({.cell = cell, .layers = 2, .bidirectional = true, .batch_first = true});
    all.push_back({.cell = cell, .steps = 5, .layers = 2, .biases = false, .batch_sizes = {4, 4, 3, 1, 1}});
  }
  return all;
}

TEST(RnnInteger, IsWithinTheFormatOfTorchAndSaysSo) {
  if (!kernels::best_gemm_path()) GTEST_SKIP() << "no integer GEMM on this CPU";
  for (const Shape& s : shapes()) {
    const Numbers n = numbers(s);
    OneLayer fp32(plan::uniform_precision("fp32"));
    const Outcome want = outcome(torch_op, s, n, fp32.get());
    // Errors of the recurrence feed on themselves; relu's grow most.
    const double slack = s.cell == Cell::rnn_relu ? 6 : 1;
    for (auto [format, bound] : {std::pair{"int8", 0.1}, {"int12", 0.01}}) {
      OneLayer layer(plan::uniform_precision(format));
      const double off = distance(outcome(ours, s, n, layer.get()), want);
      EXPECT_LT(off, bound * slack) << to_string(s) << " " << format;
      EXPECT_GT(off, 1e-5) << to_string(s) << " " << format << ": ran in fp32?";
      EXPECT_GE(layer.log->ops.size(), 3u) << "forward, dgrad, wgrad";
      for (const auto& e : layer.log->ops) {
        EXPECT_EQ(e.implementation, "hpqf.integer");
        EXPECT_EQ(e.effective_b, formats::parse_block_format(format));
      }
    }
  }
}

TEST(RnnInteger, TheSameCallGivesTheSameBits) {
  if (!kernels::best_gemm_path()) GTEST_SKIP() << "no integer GEMM on this CPU";
  const Shape s{.cell = Cell::lstm, .steps = 6, .batch = 8, .inputs = 40, .hidden = 36};
  const Numbers n = numbers(s);
  OneLayer layer(plan::uniform_precision("int8"));
  EXPECT_EQ(distance(outcome(ours, s, n, layer.get()), outcome(ours, s, n, layer.get())), 0);
}

TEST(RnnInteger, MixedFormatsAndForcedEmulationRunOnRoundedOperands) {
  const Shape s{.cell = Cell::gru};
  const Numbers n = numbers(s);
  LayerPrecision p = plan::uniform_precision("int8");
  p.wgrad = {};
  OneLayer mixed(p);
  outcome(ours, s, n, mixed.get());
  OneLayer forced(plan::uniform_precision("int8"));
  forced.state->force = "emulated";
  outcome(ours, s, n, forced.get());
  for (const OneLayer* layer : {&mixed, &forced}) EXPECT_EQ(layer->log->ops.front().implementation, "emulated");
}

}  // namespace
}  // namespace hpqf::engine::testing
