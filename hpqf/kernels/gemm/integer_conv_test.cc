#include "hpqf/kernels/gemm/integer_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/paths_test.h"

namespace hpqf::kernels {
namespace {

using Values = std::vector<float>;
constexpr auto kFirst = ImageLayout::channels_first, kLast = ImageLayout::channels_last;
constexpr GemmBlocks kInt8{Grid::int8, 64}, kInt12{Grid::int12, 64};

ConvShape square(int64_t batch, int64_t in, int64_t out, int64_t h, int64_t w, int64_t kernel, int64_t stride,
                 int64_t padding, int64_t dilation = 1, int64_t groups = 1) {
  return {batch, in, out, h, w, kernel, kernel, stride, stride, padding, padding, dilation, dilation, groups};
}

const std::vector<ConvShape>& shapes() {
  static const std::vector<ConvShape> all = {
      square(1, 3, 16, 8, 8, 3, 1, 1),
      square(2, 16, 32, 7, 7, 3, 1, 1),
      square(5, 32, 48, 8, 8, 3, 1, 1),
      square(9, 48, 16, 7, 7, 3, 2, 1),
      square(4, 64, 64, 5, 9, 3, 1, 1),
      square(3, 64, 32, 5, 9, 1, 1, 0),
      square(6, 32, 64, 8, 8, 1, 2, 0),
      square(2, 16, 20, 5, 9, 5, 1, 2),
      square(4, 20, 33, 9, 5, 5, 2, 2),
      square(2, 32, 16, 8, 8, 3, 1, 2, 2),
      square(3, 32, 16, 9, 9, 3, 2, 0, 2),
      square(4, 64, 96, 5, 9, 3, 1, 1, 1, 2),
      square(7, 6, 4, 8, 8, 3, 2, 1, 1, 2),
      square(2, 8, 8, 5, 9, 3, 1, 1, 1, 8),
      square(3, 96, 5, 1, 1, 1, 1, 0),
      square(1, 16, 16, 1, 1, 3, 1, 1),
      square(2, 100, 8, 3, 3, 1, 3, 0),
      square(2, 4, 3, 7, 7, 2, 3, 2),
      {3, 32, 32, 1, 50, 1, 3, 1, 1, 0, 1, 1, 1, 1},
      {3, 24, 40, 6, 50, 3, 5, 2, 3, 0, 4, 1, 2, 4},
      square(5, 64, 64, 17, 20, 3, 1, 1),
      square(1, 8, 16, 44, 41, 3, 1, 1),
      square(1, 4, 20, 99, 70, 3, 2, 1),
      {2, 40, 64, 5, 9, 1, 4, 2, 1, 0, 3, 1, 2, 1},
  };
  return all;
}

std::string name(const ConvShape& s) {
  std::string t;
  for (int64_t v : {s.batch, s.in_channels, s.out_channels, s.height, s.width, s.kernel_h, s.kernel_w, s.stride_h,
                    s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, s.groups})
    t += std::to_string(v) + " ";
  return t;
}

int64_t x_size(const ConvShape& s) { return s.batch * s.in_channels * s.height * s.width; }
int64_t y_size(const ConvShape& s) { return s.batch * s.out_channels * s.out_height() * s.out_width(); }
int64_t w_size(const ConvShape& s) { return s.out_channels * s.in_channels / s.groups * s.kernel_h * s.kernel_w; }

// [n][channels][pixels] to [n][pixels][channels].
Values channels_last(const Values& x, int64_t n, int64_t channels) {
  Values t(x.size());
  const int64_t pixels = int64_t(x.size()) / std::max<int64_t>(1, n * channels);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p)
        t[size_t((i * pixels + p) * channels + c)] = x[size_t((i * channels + c) * pixels + p)];
  return t;
}
Values in_layout(const Values& x, int64_t n, int64_t channels, ImageLayout layout) {
  return layout == kFirst ? x : channels_last(x, n, channels);
}
Values to_first(const Values& x, int64_t n, int64_t channels, ImageLayout layout) {  // back again
  return layout == kFirst ? x : channels_last(x, n, int64_t(x.size()) / std::max<int64_t>(1, n * channels));
}

// Every product of the convolution, by indices in channels-first tensors: body(x, w, y).
template <class Body>
void for_products(const ConvShape& s, Body body) {
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups, oh = s.out_height(), ow = s.out_width();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t co = 0; co < s.out_channels; ++co)
      for (int64_t oy = 0; oy < oh; ++oy)
        for (int64_t ox = 0; ox < ow; ++ox)
          for (int64_t c = 0; c < in; ++c)
            for (int64_t ky = 0; ky < s.kernel_h; ++ky)
              for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
                const int64_t y = oy * s.stride_h - s.padding_h + ky * s.dilation_h;
                const int64_t x = ox * s.stride_w - s.padding_w + kx * s.dilation_w;
                if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
                const int64_t ci = co / out * in + c;
                body(size_t(((n * s.in_channels + ci) * s.height + y) * s.width + x),
                     size_t(((co * in + c) * s.kernel_h + ky) * s.kernel_w + kx),
                     size_t(((n * s.out_channels + co) * oh + oy) * ow + ox));
              }
}

std::vector<double> exact_forward(const ConvShape& s, const Values& x, const Values& w, const Values& bias) {
  std::vector<double> y(size_t(y_size(s)));
  const int64_t pixels = s.out_height() * s.out_width();
  for (size_t i = 0; i < y.size(); ++i) y[i] = bias[i / size_t(pixels) % size_t(s.out_channels)];
  for_products(s, [&](size_t i, size_t j, size_t o) { y[o] += double(x[i]) * double(w[j]); });
  return y;
}
std::vector<double> exact_input_gradient(const ConvShape& s, const Values& dy, const Values& w) {
  std::vector<double> dx(size_t(x_size(s)));
  for_products(s, [&](size_t i, size_t j, size_t o) { dx[i] += double(dy[o]) * double(w[j]); });
  return dx;
}

std::vector<double> exact_weight_gradient(const ConvShape& s, const Values& x, const Values& dy) {
  std::vector<double> dw(size_t(w_size(s)));
  for_products(s, [&](size_t i, size_t j, size_t o) { dw[j] += double(x[i]) * double(dy[o]); });
  return dw;
}

double relative_error(const Values& got, const std::vector<double>& exact) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += (got[i] - exact[i]) * (got[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  return norm == 0 ? std::sqrt(error) : std::sqrt(error / norm);
}

struct Free {
  void operator()(void* p) const { std::free(p); }
};
std::unique_ptr<char, Free> packed(const GemmPath& path, const ConvShape& s, ConvPass pass, const ConstImages& w,
                                   const GemmBlocks& blocks, const PackRounding& rounding = {},
                                   int64_t* bad = nullptr) {
  const int64_t bytes = conv_weight_bytes(s, pass, blocks);
  std::unique_ptr<char, Free> p(static_cast<char*>(std::aligned_alloc(64, size_t(bytes + 63) / 64 * 64 + 64)));
  const int64_t n = conv_pack_weights(path, s, pass, w, blocks, rounding, p.get());
  if (bad) *bad = n;
  return p;
}

PackRounding seeded(bool stochastic, uint64_t seed) {
  return {stochastic ? Rounding::stochastic : Rounding::nearest_even, seed};
}

// Operands and results channels first; `layout` of all tensors in between.
Values forward(const GemmPath& path, const ConvShape& s, const Values& x, const Values& w, const Values* bias,
               const GemmBlocks& blocks, ImageLayout layout, bool stochastic = false, int64_t* bad = nullptr) {
  const Values xl = in_layout(x, s.batch, s.in_channels, layout);
  const Values wl = in_layout(w, s.out_channels, s.in_channels / s.groups, layout);
  Values y(size_t(y_size(s)), -7.0f);
  const auto p = packed(path, s, ConvPass::forward, {wl.data(), layout}, blocks, seeded(stochastic, 5));
  const int64_t n = conv_forward(path, s, {xl.data(), layout}, seeded(stochastic, 3), p.get(), blocks,
                                 {y.data(), layout}, bias ? bias->data() : nullptr);
  if (bad) *bad = n;
  return to_first(y, s.batch, s.out_channels, layout);
}
Values input_gradient(const GemmPath& path, const ConvShape& s, const Values& dy, const Values& w,
                      const GemmBlocks& blocks, ImageLayout layout, bool stochastic = false, int64_t* bad = nullptr) {
  const Values dyl = in_layout(dy, s.batch, s.out_channels, layout);
  const Values wl = in_layout(w, s.out_channels, s.in_channels / s.groups, layout);
  Values dx(size_t(x_size(s)), -7.0f);
  const auto p = packed(path, s, ConvPass::input_gradient, {wl.data(), layout}, blocks, seeded(stochastic, 5));
  const int64_t n =
      conv_input_gradient(path, s, {dyl.data(), layout}, seeded(stochastic, 4), p.get(), blocks, {dx.data(), layout});
  if (bad) *bad = n;
  return to_first(dx, s.batch, s.in_channels, layout);
}

Values weight_gradient(const GemmPath& path, const ConvShape& s, const Values& x, const Values& dy,
                       const GemmBlocks& blocks, ImageLayout layout, bool stochastic = false, int64_t* bad = nullptr) {
  const Values xl = in_layout(x, s.batch, s.in_channels, layout);
  const Values dyl = in_layout(dy, s.batch, s.out_channels, layout);
  Values dw(size_t(w_size(s)), -7.0f);
  const int64_t n = conv_weight_gradient(path, s, {xl.data(), layout}, seeded(stochastic, 3), {dyl.data(), layout},
                                         seeded(stochastic, 4), blocks, {dw.data(), layout});
  if (bad) *bad = n;
  return to_first(dw, s.out_channels, s.in_channels / s.groups, layout);
}

// Largest relative error: the codes' (integer_gemm_test.cc), rounded up because few channels make noisy sums.
double bound(const GemmPath& path, Grid grid) {
  return grid == Grid::int12 ? 0.001 : path.a_format == Format::int7 ? 0.018 : 0.013;
}
// Here hundreds of pixels share a scale, up to 2310 in these shapes.
double weight_bound(const GemmPath& path, Grid grid) {
  return grid == Grid::int12 ? 0.001 : path.a_format == Format::int7 ? 0.021 : 0.015;
}

TEST(IntegerConv, ErrorIsThatOfTheCodes) {
  for (const auto& s : shapes()) {
    const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2), bias = normal(s.out_channels, 3),
               dy = normal(y_size(s), 4);
    const auto y = exact_forward(s, x, w, bias), dx = exact_input_gradient(s, dy, w),
               dw = exact_weight_gradient(s, x, dy);
    for (const auto& path : runnable_paths())
      for (auto layout : {kFirst, kLast})
        for (const auto& blocks : {kInt8, kInt12}) {
          const double most = bound(path, blocks.grid);
          EXPECT_LT(relative_error(forward(path, s, x, w, &bias, blocks, layout), y), most) << path.name << name(s);
          EXPECT_LT(relative_error(input_gradient(path, s, dy, w, blocks, layout), dx), most) << path.name << name(s);
          EXPECT_LT(relative_error(weight_gradient(path, s, x, dy, blocks, layout), dw),
                    weight_bound(path, blocks.grid))
              << path.name << name(s);
        }
  }
}

// Every path, shape, layout, grid and rounding against the reference, bit for bit.
TEST(IntegerConv, EqualsTheReferenceBitForBit) {
  for (const auto& s : shapes()) {
    const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2), bias = normal(s.out_channels, 3),
               dy = normal(y_size(s), 4);
    for (const auto& path : runnable_paths()) {
      if (path.name == std::string("reference")) continue;
      for (auto layout : {kFirst, kLast})
        for (Grid grid : {Grid::int8, Grid::int12})
          for (bool stochastic : {false, true}) {
            const GemmBlocks blocks{grid, stochastic ? 32 : 128};
            ASSERT_EQ(forward(path, s, x, w, &bias, blocks, layout, stochastic),
                      forward(twin(path), s, x, w, &bias, blocks, layout, stochastic))
                << path.name << name(s) << int(grid) << stochastic;
            ASSERT_EQ(input_gradient(path, s, dy, w, blocks, layout, stochastic),
                      input_gradient(twin(path), s, dy, w, blocks, layout, stochastic))
                << path.name << name(s) << int(grid) << stochastic;
            ASSERT_EQ(weight_gradient(path, s, x, dy, blocks, layout, stochastic),
                      weight_gradient(twin(path), s, x, dy, blocks, layout, stochastic))
                << path.name << name(s) << int(grid) << stochastic;
          }
    }
  }
}

// What the layouts have in common is everything but the random bits.
TEST(IntegerConv, LayoutsAgreeBitForBit) {
  for (const auto& s : shapes()) {
    const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2);
    for (const auto& path : runnable_paths())
      EXPECT_EQ(forward(path, s, x, w, nullptr, kInt8, kFirst), forward(path, s, x, w, nullptr, kInt8, kLast))
          << path.name << name(s);
  }
}

// Sizes nobody thought of, each with scratch of its own size (a new thread), where a sanitizer sees what is exceeded.
TEST(IntegerConv, RandomShapesAreExactToTheCodes) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) { return low + int64_t(random() % uint64_t(high - low + 1)); };
  for (int i = 0; i < 60; ++i) {
    ConvShape s;
    do {
      s.groups = pick(1, 2), s.batch = pick(1, 5);
      s.in_channels = s.groups * pick(1, 40), s.out_channels = s.groups * pick(1, 40);
      s.height = pick(1, 12), s.width = pick(1, 12), s.kernel_h = pick(1, 4), s.kernel_w = pick(1, 5);
      s.stride_h = pick(1, 3), s.stride_w = pick(1, 3), s.padding_h = pick(0, 3), s.padding_w = pick(0, 3);
      s.dilation_h = pick(1, 3), s.dilation_w = pick(1, 3);
    } while (s.height + 2 * s.padding_h < s.dilation_h * (s.kernel_h - 1) + 1 ||
             s.width + 2 * s.padding_w < s.dilation_w * (s.kernel_w - 1) + 1);
    const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2), bias = normal(s.out_channels, 3),
               dy = normal(y_size(s), 4);
    const auto y = exact_forward(s, x, w, bias), dx = exact_input_gradient(s, dy, w),
               dw = exact_weight_gradient(s, x, dy);
    const auto layout = pick(0, 1) ? kFirst : kLast;
    for (const auto& path : runnable_paths())
      std::thread([&] {
        EXPECT_LT(relative_error(forward(path, s, x, w, &bias, kInt12, layout), y), 0.0015) << path.name << name(s);
        EXPECT_LT(relative_error(input_gradient(path, s, dy, w, kInt12, layout), dx), 0.0015) << path.name << name(s);
        EXPECT_LT(relative_error(weight_gradient(path, s, x, dy, kInt12, layout), dw), 0.0015) << path.name << name(s);
      }).join();
  }
}

TEST(IntegerConv, LayoutsMayDiffer) {
  const auto s = square(3, 40, 24, 7, 9, 3, 2, 1);
  const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2), dy = normal(y_size(s), 4);
  const auto x_last = channels_last(x, s.batch, s.in_channels), dy_last = channels_last(dy, s.batch, s.out_channels);
  for (const auto& path : runnable_paths()) {
    Values y(dy.size()), dx(x.size()), dw(w.size());
    const auto forward_weights = packed(path, s, ConvPass::forward, {w.data(), kFirst}, kInt8);
    conv_forward(path, s, {x_last.data(), kLast}, {}, forward_weights.get(), kInt8, {y.data(), kFirst});
    EXPECT_EQ(y, forward(path, s, x, w, nullptr, kInt8, kFirst)) << path.name;
    const auto gradient_weights = packed(path, s, ConvPass::input_gradient, {w.data(), kFirst}, kInt8);
    conv_input_gradient(path, s, {dy.data(), kFirst}, {}, gradient_weights.get(), kInt8, {dx.data(), kLast});
    EXPECT_EQ(to_first(dx, s.batch, s.in_channels, kLast), input_gradient(path, s, dy, w, kInt8, kFirst)) << path.name;
    conv_weight_gradient(path, s, {x_last.data(), kLast}, {}, {dy.data(), kFirst}, {}, kInt8, {dw.data(), kFirst});
    EXPECT_EQ(dw, weight_gradient(path, s, x, dy, kInt8, kFirst)) << path.name;
  }
}

TEST(IntegerConv, NanAndInfinityReachExactlyWhatDependsOnThemAndAreCounted) {
  for (const auto& s : shapes()) {
    const Values x0 = normal(x_size(s), 1), w = normal(w_size(s), 2), dy0 = normal(y_size(s), 4);
    for (const auto& path : runnable_paths())
      for (int corner : {0, 1}) {
        const auto layout = corner ? kFirst : kLast;
        Values x = x0, dy = dy0;
        const size_t px = corner ? x.size() - 1 : 0, py = corner ? dy.size() / 2 : 0;
        x[px] = corner ? INFINITY : std::nanf("");
        dy[py] = corner ? -INFINITY : std::nanf("");
        std::vector<char> y_hit(dy.size()), dx_hit(x.size()), dw_hit(w.size());
        for_products(s, [&](size_t i, size_t j, size_t o) {
          if (i == px) y_hit[o] = dw_hit[j] = 1;
          if (o == py) dx_hit[i] = 1;
        });
        const int read = std::count(y_hit.begin(), y_hit.end(), 1) > 0;  // a stride may skip the pixel
        int64_t bad = 0;
        const auto y = forward(path, s, x, w, nullptr, kInt8, layout, false, &bad);
        EXPECT_LE(bad, 1) << path.name << name(s);
        EXPECT_GE(bad, read) << path.name << name(s);
        for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), y_hit[i] != 0) << path.name << name(s) << i;
        const auto dx = input_gradient(path, s, dy, w, kInt8, layout, false, &bad);
        EXPECT_EQ(bad, 1) << path.name << name(s);
        for (size_t i = 0; i < dx.size(); ++i)
          ASSERT_EQ(std::isnan(dx[i]), dx_hit[i] != 0) << path.name << name(s) << i;
        const auto dw = weight_gradient(path, s, x, dy0, kInt8, layout, false, &bad);
        EXPECT_LE(bad, 1) << path.name << name(s);
        EXPECT_GE(bad, read) << path.name << name(s);
        for (size_t i = 0; i < dw.size(); ++i)
          ASSERT_EQ(std::isnan(dw[i]), dw_hit[i] != 0) << path.name << name(s) << i;
        // A gradient meets every tap, some of them in the padding: NaN times zero.
        const auto dw2 = weight_gradient(path, s, x0, dy, kInt8, layout, false, &bad);
        EXPECT_EQ(bad, 1) << path.name << name(s);
        const size_t pixels = size_t(s.out_height() * s.out_width()), out = size_t(s.out_channels);
        for (size_t i = 0; i < dw2.size(); ++i)
          ASSERT_EQ(std::isnan(dw2[i]), i / (dw2.size() / out) == py / pixels % out) << path.name << name(s) << i;
      }
  }
}

TEST(IntegerConv, NanInAWeightReachesItsOutputChannelAndIsCounted) {
  const auto s = square(4, 64, 48, 7, 7, 3, 1, 1);
  const auto x = normal(x_size(s), 1);
  auto w = normal(w_size(s), 2);
  w[size_t(5 * 64 * 9 + 100)] = std::nanf("");
  for (const auto& path : runnable_paths()) {
    int64_t bad = 0;
    packed(path, s, ConvPass::forward, {w.data(), kFirst}, kInt8, {}, &bad);
    EXPECT_EQ(bad, 1);
    const auto y = forward(path, s, x, w, nullptr, kInt8, kFirst);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 49 % 48 == 5) << path.name;
  }
}

TEST(IntegerConv, ZerosAndTheWorstCase) {
  const auto s = square(2, 64, 32, 8, 8, 3, 1, 0);
  for (const auto& path : runnable_paths())
    for (const auto& blocks : {kInt8, kInt12})
      for (bool stochastic : {false, true}) {
        const Values zero(size_t(x_size(s)), 0.0f), w(size_t(w_size(s)), 3.0f);
        for (float v : forward(path, s, zero, w, nullptr, blocks, kFirst, stochastic)) EXPECT_EQ(v, 0);
        // Signs aligned at the largest codes: the sums are those of wide integers.
        for (float sign : {1.0f, -1.0f}) {
          const Values x(size_t(x_size(s)), 5.0f * sign), dy(size_t(y_size(s)), 5.0f * sign);
          for (float v : forward(path, s, x, w, nullptr, blocks, kFirst, stochastic))
            EXPECT_NEAR(v, sign * 15 * 576, 15 * 576 * 0.02) << path.name;
          const auto dx = input_gradient(path, s, dy, w, blocks, kFirst, stochastic);
          EXPECT_NEAR(dx[3 * 8 + 3], sign * 15 * 288, 15 * 288 * 0.02) << path.name;
          EXPECT_NEAR(dx[0], sign * 15 * 32, 15 * 32 * 0.02) << path.name;
          for (float v : weight_gradient(path, s, x, dy, blocks, kFirst, stochastic))
            EXPECT_NEAR(v, 25 * 72, 25 * 72 * 0.02) << path.name;
        }
      }
}

TEST(IntegerConv, EmptyBatch) {
  const auto s = square(0, 32, 32, 8, 8, 3, 1, 1);
  for (const auto& path : runnable_paths()) {
    const auto w = normal(w_size(s), 2);
    EXPECT_TRUE(forward(path, s, {}, w, nullptr, kInt8, kFirst).empty());
    EXPECT_TRUE(input_gradient(path, s, {}, w, kInt8, kFirst).empty());
    EXPECT_EQ(weight_gradient(path, s, {}, {}, kInt8, kFirst), Values(w.size(), 0.0f));
  }
}

TEST(IntegerConv, ThreadsDoNotChangeTheResult) {
  for (const auto& s : {square(11, 32, 48, 12, 12, 3, 1, 1), square(1, 64, 64, 40, 40, 3, 1, 1),
                        square(2, 48, 64, 20, 20, 3, 2, 1), square(3, 64, 40, 5, 6, 3, 1, 1)}) {
    const auto x = normal(x_size(s), 1), w = normal(w_size(s), 2), dy = normal(y_size(s), 4);
    for (const auto& path : runnable_paths())
      for (auto layout : {kFirst, kLast}) {
        auto all = [&] {
          return std::vector<Values>{forward(path, s, x, w, nullptr, kInt8, layout, true),
                                     input_gradient(path, s, dy, w, kInt8, layout, true),
                                     weight_gradient(path, s, x, dy, kInt8, layout, true)};
        };
        const auto serial = all();
        base::set_parallel_backend(in_pieces);
        const auto pieces = all();
        base::set_parallel_backend(nullptr);
        EXPECT_EQ(serial, pieces) << path.name << name(s);
      }
  }
}

TEST(IntegerConv, StochasticRoundingIsUnbiased) {
  const auto s = square(2, 32, 8, 6, 6, 3, 1, 1);
  const int draws = 256;
  Values w = normal(w_size(s), 2);
  for (auto& v : w) v = v < 0 ? -1 : 1;  // codes without error
  const auto dy = normal(y_size(s), 4);
  const auto exact = exact_input_gradient(s, dy, w);
  for (const auto& path : runnable_paths()) {
    const auto p = packed(path, s, ConvPass::input_gradient, {w.data(), kFirst}, kInt8);
    std::vector<double> mean(exact.size());
    double single = 0;
    for (int seed = 0; seed < draws; ++seed) {
      Values dx(exact.size());
      conv_input_gradient(path, s, {dy.data(), kFirst}, seeded(true, uint64_t(seed)), p.get(), kInt8,
                          {dx.data(), kFirst});
      single += relative_error(dx, exact) / draws;
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += dx[i] / double(draws);
    }
    // Independent errors shrink by sqrt(256) = 16; a bias would stay.
    EXPECT_LT(relative_error(Values(mean.begin(), mean.end()), exact), single / 11) << path.name;
  }
}

TEST(IntegerConv, RefusesWhatHasNoMeaning) {
  EXPECT_THROW(conv_weight_bytes(square(1, 32, 32, 2, 2, 3, 1, 0), ConvPass::forward, kInt8), Error);
  EXPECT_THROW(conv_weight_bytes(square(1, 32, 32, 8, 8, 3, 0, 1), ConvPass::forward, kInt8), Error);
  EXPECT_THROW(conv_weight_bytes(square(1, 32, 33, 8, 8, 3, 1, 1, 1, 2), ConvPass::forward, kInt8), Error);
  EXPECT_THROW(conv_weight_bytes(square(1, 32, 32, 8, 8, 3, 1, 1), ConvPass::forward, {Grid::int8, 48}), Error);
  EXPECT_NO_THROW(conv_weight_bytes(square(1, 32, 32, 8, 8, 3, 1, 1), ConvPass::forward, kInt8));
}

}  // namespace
}  // namespace hpqf::kernels
