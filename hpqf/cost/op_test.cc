#include "hpqf/cost/op.h"

#include <gtest/gtest.h>

namespace hpqf::cost {
namespace {

// Multiply-adds of a matrix product, counted one by one.
int64_t counted(int m, int n, int k) {
  int64_t sum = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j)
      for (int l = 0; l < k; ++l) ++sum;
  return sum;
}

// Multiply-adds of a convolution with padding, taps that meet the padding included, as every counter does.
int64_t counted_conv(int channels, int filters, int kernel, int out, int groups) {
  int64_t sum = 0;
  for (int f = 0; f < filters; ++f)
    for (int y = 0; y < out; ++y)
      for (int x = 0; x < out; ++x)
        for (int c = 0; c < channels / groups; ++c) sum += kernel * kernel;
  return sum;
}

TEST(Op, LinearHasThreeProductsOfEqualFlops) {
  const LinearGemms gemms = linear_gemms(7, 5, 3);
  EXPECT_EQ(gemms.forward.flops(), 2 * counted(7, 3, 5));
  EXPECT_EQ(gemms.dgrad.flops(), 2 * counted(7, 5, 3));
  EXPECT_EQ(gemms.wgrad.flops(), 2 * counted(3, 5, 7));
  EXPECT_EQ(gemms.dgrad.flops(), gemms.forward.flops());
  EXPECT_EQ(gemms.wgrad.flops(), gemms.forward.flops());
  // Output shapes: y [rows, out], dx [rows, in], dW [out, in].
  EXPECT_EQ(gemms.dgrad.m * gemms.dgrad.n, 7 * 5);
  EXPECT_EQ(gemms.wgrad.m * gemms.wgrad.n, 3 * 5);
}

TEST(Op, Linear) {
  const Op op = linear("fc", 4, 10, 6);
  EXPECT_EQ(op.flops, 2 * 4 * 10 * 6);
  EXPECT_EQ(op.parameters, 66);
  EXPECT_EQ(op.weight, 60);
  EXPECT_EQ(op.a, 40);
  EXPECT_EQ(op.y, 24);
  EXPECT_EQ(linear("fc", 4, 10, 6, false).parameters, 60);
}

TEST(Op, Conv2d) {
  for (const int groups : {1, 4}) {
    const Op op = conv2d("c", {.in_channels = 8,
                               .out_channels = 12,
                               .kernel = 3,
                               .in_size = 10,
                               .out_size = 5,
                               .groups = double(groups),
                               .bias = true});
    EXPECT_EQ(op.flops, 2 * counted_conv(8, 12, 3, 5, groups));
    EXPECT_EQ(op.parameters, 12 * 8 / groups * 9 + 12);
    EXPECT_EQ(op.a, 800);
    EXPECT_EQ(op.y, 300);
  }
}

TEST(Op, AttentionBothWays) {
  Attention shape{.heads = 3, .queries = 6, .keys = 6, .dim = 4};
  EXPECT_EQ(attention_flops(shape), 2 * 3 * (counted(6, 6, 4) + counted(6, 4, 6)));
  shape.causal = Causal::counted_full;
  EXPECT_EQ(attention_flops(shape), 2 * 3 * (counted(6, 6, 4) + counted(6, 4, 6)));
  shape.causal = Causal::counted_exact;
  int64_t pairs = 0;
  for (int q = 0; q < 6; ++q)
    for (int k = 0; k <= q; ++k) ++pairs;
  EXPECT_EQ(attention_flops(shape), 2 * 2 * 3 * pairs * 4);
}

TEST(Op, UnfusedAttentionKeepsItsProbabilities) {
  Attention shape{.heads = 2, .queries = 8, .keys = 16, .dim = 4, .fused = true};
  const Op fused = attention("a", shape);
  EXPECT_EQ(fused.forward, 0);
  EXPECT_EQ(fused.a, 2 * 8 * 4);
  EXPECT_EQ(fused.b, 2 * 2 * 16 * 4);
  shape.fused = false;
  const Op unfused = attention("a", shape);
  EXPECT_EQ(unfused.flops, fused.flops);
  EXPECT_EQ(unfused.saved - fused.saved, 2 * 8 * 16);
  EXPECT_EQ(unfused.forward, 4 * 2 * 8 * 16);
}

TEST(Op, RnnIsTwoProductsAStep) {
  const Op op = rnn("lstm", {.gates = 4, .inputs = 5, .hidden = 7, .steps = 3, .directions = 2});
  const int64_t step = counted(1, 4 * 7, 5) + counted(1, 4 * 7, 7);
  EXPECT_EQ(op.flops, 2 * 2 * 3 * step);
  EXPECT_EQ(op.parameters, 2 * (28 * 5 + 28 * 7 + 2 * 28));  // torch.nn.LSTM(5, 7, bidirectional=True)
}

}  // namespace
}  // namespace hpqf::cost
