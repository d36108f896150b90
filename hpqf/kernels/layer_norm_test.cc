// Every implementation against the definition in double precision; sums over rows that no split changes.
#include "hpqf/kernels/layer_norm.h"

#include <cmath>
#include <limits>

#include "hpqf/kernels/guarded_test.h"

namespace hpqf::kernels {
namespace {

using testing_support::Guarded;
using testing_support::kUnit;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  int64_t rows, cols;
  float mean, spread;
  bool weighted;
};

struct Row {  // exact mean and 1 / sqrt(variance + eps)
  double mean = 0, rstd = 0;
  Row(const Guarded& x, int64_t first, int64_t cols, double eps) {
    for (int64_t j = 0; j < cols; ++j) mean += x[first + j];
    mean /= static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) rstd += (x[first + j] - mean) * (x[first + j] - mean);
    rstd = 1 / std::sqrt(rstd / static_cast<double>(cols) + eps);
  }
};

class LayerNormKernel : public testing::TestWithParam<std::tuple<int, Case>> {
 protected:
  const LayerNormImplementation& kernel() const { return layer_norm_implementations()[std::get<0>(GetParam())]; }
  Case sizes() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!kernel().runnable()) GTEST_SKIP() << kernel().name << " does not run on this CPU";
  }
  std::mt19937 random{21};
};

TEST_P(LayerNormKernel, Forward) {
  const auto [rows, cols, mean, spread, weighted] = sizes();
  Guarded x = Guarded::normal(rows * cols, random, spread, mean), w = Guarded::normal(cols, random);
  Guarded b = Guarded::normal(cols, random), y(rows * cols), means(rows), rstds(rows);
  LayerNormForward a{
      rows,    cols,        1e-5,       x.get(), weighted ? w.get() : nullptr, weighted ? b.get() : nullptr,
      y.get(), means.get(), rstds.get()};
  kernel().forward(a, 0, rows);
  for (int64_t row = 0; row < rows; ++row) {
    const Row exact(x, row * cols, cols, a.eps);
    EXPECT_NEAR(exact.mean, means[row], 2 * kUnit * (std::abs(mean) + 4 * spread));
    EXPECT_NEAR(exact.rstd, rstds[row], 6 * kUnit * exact.rstd);
    for (int64_t j = 0; j < cols; ++j) {
      const double weight = weighted ? w[j] : 1.0, bias = weighted ? b[j] : 0.0;
      const double n = (x[row * cols + j] - exact.mean) * exact.rstd;
      ASSERT_NEAR(n * weight + bias, y[row * cols + j],
                  5 * kUnit * (std::abs(n * weight) + std::abs(weight) + std::abs(bias)));
    }
  }
  Guarded in_x = x;
  a.x = a.y = in_x.get();
  kernel().forward(a, 0, rows);
  EXPECT_EQ(y, in_x);
  EXPECT_TRUE(y.intact() && means.intact() && rstds.intact() && in_x.intact());
}

TEST_P(LayerNormKernel, Backward) {
  const auto [rows, cols, mean, spread, weighted] = sizes();
  Guarded x = Guarded::normal(rows * cols, random, spread, mean), w = Guarded::normal(cols, random);
  Guarded dy = Guarded::normal(rows * cols, random), dx(rows * cols), means(rows), rstds(rows), dw(cols), db(cols);
  for (int64_t row = 0; row < rows; ++row) {
    const Row exact(x, row * cols, cols, 1e-5);
    means.get()[row] = static_cast<float>(exact.mean);
    rstds.get()[row] = static_cast<float>(exact.rstd);
  }
  LayerNormBackward a{rows, cols, x.get(), means.get(), rstds.get(), weighted ? w.get() : nullptr, dy.get(), dx.get()};
  kernel().backward(a, {0, rows, dw.get(), db.get()});
  const auto normal = [&](int64_t i) { return (x[i] - double{means[i / cols]}) * rstds[i / cols]; };
  const auto weight = [&](int64_t j) { return weighted ? double{w[j]} : 1.0; };
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0, product = 0, size = 0, product_size = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const double g = dy[row * cols + j] * weight(j), gn = g * normal(row * cols + j);
      sum += g, product += gn, size += std::abs(g), product_size += std::abs(gn);
    }
    const double n = static_cast<double>(cols), rstd = rstds[row];
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t i = row * cols + j;
      const double g = dy[i] * weight(j);
      ASSERT_NEAR(rstd * (g - sum / n - normal(i) * product / n), dx[i],
                  5 * kUnit * rstd * (std::abs(g) + size / n + std::abs(normal(i)) * product_size / n));
    }
  }
  for (int64_t j = 0; j < cols; ++j) {
    double dweight = 0, dbias = 0, dweight_size = 0, dbias_size = 0;
    for (int64_t i = j; i < rows * cols; i += cols) {
      dweight += dy[i] * normal(i), dweight_size += std::abs(dy[i] * normal(i));
      dbias += dy[i], dbias_size += std::abs(dy[i]);
    }
    ASSERT_NEAR(dweight, dw[j], 5 * kUnit * dweight_size);
    ASSERT_NEAR(dbias, db[j], 3 * kUnit * dbias_size);
  }
  Guarded in_dy = dy;
  a.dy = a.dx = in_dy.get();
  kernel().backward(a, {0, rows, nullptr, nullptr});
  EXPECT_EQ(dx, in_dy);
  EXPECT_TRUE(dx.intact() && dw.intact() && db.intact() && in_dy.intact());
}

TEST_P(LayerNormKernel, SpecialRows) {
  const int64_t cols = sizes().cols;
  const auto forward = [&](float fill, float first) {
    std::vector<float> x(cols, fill), y(cols + 2);
    x[0] = first;
    kernel().forward({1, cols, 1e-5, x.data(), nullptr, nullptr, y.data(), &y[cols], &y[cols + 1]}, 0, 1);
    return y;  // with mean and rstd
  };
  for (const float first : {kNan, kInfinity, -kInfinity}) {
    const auto y = forward(1.0f, first);
    for (int64_t j = 0; j < cols; ++j) EXPECT_TRUE(std::isnan(y[j]));
    EXPECT_FALSE(std::isfinite(y[cols]));
    EXPECT_TRUE(std::isnan(y[cols + 1]));
  }
  for (const float constant : {0.0f, 3.0f, -1e-42f}) {
    const auto y = forward(constant, constant);
    for (int64_t j = 0; j < cols; ++j) EXPECT_NEAR(0.0f, y[j], 1e-37);
    EXPECT_EQ(constant, y[cols]);
    EXPECT_NEAR(1 / std::sqrt(1e-5), y[cols + 1], 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LayerNormKernel,
    testing_support::over(layer_norm_implementations(),
                          testing::Values(Case{1, 1, 0, 1, true}, Case{2, 3, 0, 1, false}, Case{3, 7, 3, 1, true},
                                          Case{4, 8, 0, 1, true}, Case{5, 9, 0, 1e-3f, false}, Case{2, 31, 0, 1, true},
                                          Case{3, 32, -5, 2, true}, Case{2, 33, 0, 1, true}, Case{7, 100, 100, 1, true},
                                          Case{2, 1000, 1e4f, 1, true}, Case{40, 512, 0, 1, true})));

class LayerNormRows : public testing::TestWithParam<int64_t> {};

TEST_P(LayerNormRows, NoSplitChangesAResult) {
  std::mt19937 random(22);
  const int64_t rows = GetParam(), cols = 77, n = rows * cols;
  Guarded x = Guarded::normal(n, random), w = Guarded::normal(cols, random), dy = Guarded::normal(n, random);
  Guarded mean(rows), rstd(rows), scratch(layer_norm_scratch(rows, cols));
  const auto run = [&](bool dweight, bool dbias) {
    Guarded y(n), dx(n), dw(cols), db(cols);
    layer_norm(LayerNormForward{rows, cols, 1e-5, x.get(), w.get(), nullptr, y.get(), mean.get(), rstd.get()});
    layer_norm(LayerNormBackward{rows, cols, x.get(), mean.get(), rstd.get(), w.get(), dy.get(), dx.get(),
                                 dweight ? dw.get() : nullptr, dbias ? db.get() : nullptr,
                                 dweight || dbias ? scratch.get() : nullptr});
    return std::vector<Guarded>{y, dx, dw, db};
  };
  const auto serial = run(true, true);
  std::vector<Guarded> split;
  {
    testing_support::Splitting splitting;
    split = run(true, true);
  }
  EXPECT_EQ(serial, split);
  EXPECT_TRUE(scratch.intact() && mean.intact() && rstd.intact());
  EXPECT_EQ(serial[1], run(false, false)[1]);
  EXPECT_EQ(serial[2], run(true, false)[2]);
  EXPECT_EQ(serial[3], run(false, true)[3]);
  for (int64_t j = 0; j < cols; ++j) {
    double dbias = 0, size = 0;
    for (int64_t i = j; i < n; i += cols) dbias += dy[i], size += std::abs(dy[i]);
    ASSERT_NEAR(dbias, serial[3][j], 3 * kUnit * size);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LayerNormRows, testing::Values(1, 15, 16, 17, 512, 513, 1000));

TEST(LayerNorm, EmptyShapes) {
  Guarded dw({1, 2, 3}), db({1, 2, 3});
  EXPECT_EQ(0, layer_norm_scratch(0, 3));
  EXPECT_LE(layer_norm_scratch(1 << 20, 3), 64 * 3);
  layer_norm(LayerNormForward{0, 3});
  layer_norm(LayerNormForward{3, 0});
  layer_norm(LayerNormBackward{3, 0});
  layer_norm(LayerNormBackward{.rows = 0, .cols = 3, .dweight = dw.get(), .dbias = db.get()});
  EXPECT_EQ(Guarded(3), dw);
  EXPECT_EQ(Guarded(3), db);
}

TEST(LayerNorm, TheTwinIsLast) {
  EXPECT_STREQ("ref", layer_norm_implementations().back().name);
  EXPECT_TRUE(layer_norm_implementations().back().runnable());
}

}  // namespace
}  // namespace hpqf::kernels
