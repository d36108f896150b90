#include "hpqf/engine/rounding.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>

#include "hpqf/engine/rounding_aten.h"

namespace hpqf::engine {
namespace {

struct Fixture : ::testing::Test {
  Fixture() {
    layer().runtime = state.get();
    layer().name = "layer";
  }
  Layer& layer() { return state->layers.front(); }
  std::shared_ptr<RuntimeState> state = [] {
    auto s = std::make_shared<RuntimeState>();
    s->layers.emplace_back();
    return s;
  }();
};
using Rounding = Fixture;
using WeightCopies = Fixture;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.contiguous().view(at::kInt).equal(b.contiguous().view(at::kInt));
}

// torch's own casts are the independent oracle for the unscaled formats.
TEST_F(Rounding, BfloatAndHalfAgreeWithTorchCasts) {
  at::Tensor x = at::randn({37, 53}).mul_(at::randn({37, 53}).mul(8).exp());
  for (auto [format, type] : {std::pair{"bf16", at::kBFloat16}, std::pair{"fp16", at::kHalf}}) {
    at::Tensor want = x.to(type).to(at::kFloat);
    EXPECT_TRUE(same_bits(round(x, formats::parse_block_format(format), -1, layer(), plan::Role::input), want))
        << format;
    EXPECT_TRUE(same_bits(round(x.t(), formats::parse_block_format(format), -1, layer(), plan::Role::input), want.t()))
        << format;
  }
}

// Kernels and ATen arithmetic are two writings of one definition.
TEST_F(Rounding, EveryFormatAgreesWithAtenArithmetic) {
  at::Tensor x = at::randn({3, 40, 5, 7}).mul_(3);
  for (const char* text : {"tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8", "int8[row]", "int8[tensor]", "int4",
                           "int12", "int16", "int8[1x64,pow2]", "fp8_e4m3[row,pow2]"})
    for (int64_t axis : {1, 3}) {
      const auto format = formats::parse_block_format(text);
      at::Tensor ours = round(x, format, axis, layer(), plan::Role::input), aten = round_aten(x, format, axis);
      EXPECT_LE(ours.sub(aten).abs().max().item().toFloat(), 1e-6f * x.abs().max().item().toFloat())
          << text << " axis " << axis;
      EXPECT_EQ(ours.sizes(), x.sizes());
    }
}

TEST_F(Rounding, ChannelsLastKeepsLayoutAndNumbers) {
  at::Tensor x = at::randn({2, 32, 6, 5});
  at::Tensor cl = x.contiguous(at::MemoryFormat::ChannelsLast);
  const auto format = formats::parse_block_format("int8[1x32]");
  at::Tensor a = round(x, format, 1, layer(), plan::Role::input), b = round(cl, format, 1, layer(), plan::Role::input);
  EXPECT_TRUE(b.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(same_bits(a, b));
}

TEST_F(Rounding, OddShapesPass) {
  const auto format = formats::parse_block_format("int8");
  EXPECT_EQ(round(at::randn({0, 4}), format, -1, layer(), plan::Role::input).numel(), 0);
  EXPECT_EQ(round(at::full({}, 2.f), format, -1, layer(), plan::Role::input).item().toFloat(), 2.f);
  at::Tensor expanded = at::randn({1, 8}).expand({5, 8});
  EXPECT_EQ(round(expanded, format, -1, layer(), plan::Role::input).sizes(), expanded.sizes());
}

struct Casts : observe::EventSink {
  std::vector<observe::CastEvent> seen;
  void on_cast(const observe::CastEvent& e) override { seen.push_back(e); }
};

TEST_F(Rounding, OverflowAndNonFiniteSourcesAreReported) {
  auto casts = std::make_shared<Casts>();
  state->events = casts;
  at::Tensor x = at::full({8}, 1.f);
  round(x, formats::parse_block_format("fp16"), -1, layer(), plan::Role::input);
  EXPECT_TRUE(casts->seen.empty());
  x[3] = 70000.f;
  x[5] = std::numeric_limits<float>::quiet_NaN();
  at::Tensor y = round(x, formats::parse_block_format("fp16"), -1, layer(), plan::Role::output_grad);
  ASSERT_EQ(casts->seen.size(), 1u);
  EXPECT_EQ(casts->seen[0].overflow, 1);
  EXPECT_EQ(casts->seen[0].nonfinite_in, 1);
  EXPECT_EQ(casts->seen[0].role, plan::Role::output_grad);
  EXPECT_TRUE(std::isinf(y[3].item().toFloat()));
}

TEST_F(Rounding, StraightThroughGivesTheGradientUnchanged) {
  at::Tensor x = at::randn({5, 6}).requires_grad_();
  at::Tensor g = at::randn({5, 6});
  round_ste(x, formats::parse_block_format("int4"), -1, ref(&layer()), plan::Role::input).backward(g);
  EXPECT_TRUE(x.grad().equal(g));
}

TEST_F(WeightCopies, AreReusedUntilTheContentMoves) {
  clear_weight_cache();
  const auto format = formats::parse_block_format("bf16");
  at::Tensor w = at::randn({16, 24}).requires_grad_();
  auto copy = [&] { return round_weight(w, format, -1, ref(&layer())).detach().clone(); };
  auto fresh = [&] { return w.detach().to(at::kBFloat16).to(at::kFloat); };
  EXPECT_TRUE(copy().equal(fresh()));
  EXPECT_TRUE(copy().equal(fresh()));
  EXPECT_EQ(weight_cache_stats().hits, 1);
  {
    at::NoGradGuard no_grad;
    w.add_(1);  // moves the version
  }
  EXPECT_TRUE(copy().equal(fresh()));
  w.variable_data().mul_(3);  // `.data`: same bytes, another version counter
  EXPECT_TRUE(copy().equal(fresh()));
  EXPECT_EQ(weight_cache_stats().misses, 3);
}

TEST_F(WeightCopies, NoGradFirstDoesNotLoseTheGradient) {
  clear_weight_cache();
  const auto format = formats::parse_block_format("bf16");
  at::Tensor w = at::randn({4, 4}).requires_grad_();
  {
    at::NoGradGuard no_grad;
    EXPECT_FALSE(round_weight(w, format, -1, ref(&layer())).requires_grad());
  }
  at::Tensor c = round_weight(w, format, -1, ref(&layer()));
  ASSERT_TRUE(c.requires_grad());
  c.sum().backward();
  EXPECT_TRUE(w.grad().equal(at::full({4, 4}, 1.f)));
}

TEST_F(WeightCopies, TransposedViewSharesTheNumbers) {
  const auto format = formats::parse_block_format("int8[1x32]");
  at::Tensor w = at::randn({40, 70});
  at::Tensor a = round_weight(w, format, -1, ref(&layer())), b = round_weight(w.t(), format, -2, ref(&layer()));
  EXPECT_TRUE(same_bits(a, b.t()));
}

}  // namespace
}  // namespace hpqf::engine
