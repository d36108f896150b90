// Every implementation against the definition in double precision.
#include "hpqf/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "hpqf/kernels/guarded_test.h"

namespace hpqf::kernels {
namespace {

using testing_support::Guarded;
using testing_support::kUnit;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class SoftmaxKernel : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  const SoftmaxImplementation& kernel() const { return softmax_implementations()[std::get<0>(GetParam())]; }
  bool log() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!kernel().runnable()) GTEST_SKIP() << kernel().name << " does not run on this CPU";
  }
  std::vector<float> row(std::vector<float> x, float scale = 1.0f) const {
    kernel().forward({1, static_cast<int64_t>(x.size()), log(), scale, x.data(), x.data()}, 0, 1);
    return x;
  }
  // What stands for a probability of 0 and of 1.
  float none() const { return log() ? -kInfinity : 0.0f; }
  float all() const { return log() ? 0.0f : 1.0f; }
};

TEST_P(SoftmaxKernel, ForwardAndBackward) {
  std::mt19937 random(11);
  for (const int64_t cols : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 130, 1000, 3001}) {
    for (const float scale : {1.0f, 0.125f, 3.7f, -0.6f}) {
      const int64_t rows = 3, n = rows * cols;
      Guarded x = Guarded::normal(n, random, 4.0f), dy = Guarded::normal(n, random), y(n), dx(n);
      kernel().forward({rows, cols, log(), scale, x.get(), y.get()}, 0, rows);
      kernel().backward({rows, cols, log(), scale, y.get(), dy.get(), dx.get()}, 0, rows);
      for (int64_t first = 0; first < n; first += cols) {
        double largest = -kInfinity, sum = 0, total = 0, magnitude = 0;
        for (int64_t i = first; i < first + cols; ++i) largest = std::max(largest, double{scale} * x[i]);
        for (int64_t i = first; i < first + cols; ++i) {
          sum += std::exp(double{scale} * x[i] - largest);
          const double part = log() ? double{dy[i]} : double{dy[i]} * y[i];
          total += part;
          magnitude += std::abs(part);
        }
        for (int64_t i = first; i < first + cols; ++i) {
          const double below = double{scale} * x[i] - largest;
          // scale x, its largest, and their difference are rounded: that much is lost in the exponent.
          const double exponent = std::abs(below) + std::abs(scale * x[i]) + std::abs(largest);
          const double expected = log() ? below - std::log(sum) : std::exp(below) / sum;
          const double bound = log() ? 4 + exponent + std::abs(expected) : (6 + exponent) * expected;
          ASSERT_NEAR(expected, y[i], bound * kUnit + 1e-37) << cols << " " << scale;
          const double p = log() ? std::exp(double{y[i]}) : double{y[i]};
          const double gradient = scale * (log() ? dy[i] - p * total : p * (dy[i] - total));
          const double size =
              std::abs(scale) * (log() ? std::abs(dy[i]) + p * magnitude : p * (std::abs(dy[i]) + magnitude));
          ASSERT_NEAR(gradient, dx[i], 8 * kUnit * size + 1e-37) << cols << " " << scale;
        }
      }
      Guarded in_x = x, in_dy = dy, in_y = y;
      kernel().forward({rows, cols, log(), scale, in_x.get(), in_x.get()}, 0, rows);
      kernel().backward({rows, cols, log(), scale, y.get(), in_dy.get(), in_dy.get()}, 0, rows);
      kernel().backward({rows, cols, log(), scale, in_y.get(), dy.get(), in_y.get()}, 0, rows);
      EXPECT_EQ(y, in_x);
      EXPECT_EQ(dx, in_dy);
      EXPECT_EQ(dx, in_y);
      EXPECT_TRUE(y.intact() && dx.intact() && in_x.intact());
    }
  }
}

TEST_P(SoftmaxKernel, SpecialRows) {
  for (const int64_t cols : {1, 5, 8, 21, 70}) {
    const auto with = [&](float x, float fill) {
      std::vector<float> values(cols, fill);
      values[cols / 2] = x;
      return row(values);
    };
    for (const float y : with(kNan, 1.0f)) EXPECT_TRUE(std::isnan(y));
    for (const float y : with(kInfinity, 1.0f)) EXPECT_TRUE(std::isnan(y));
    for (const float y : with(-kInfinity, -kInfinity)) EXPECT_TRUE(std::isnan(y));
    for (const float y : with(kNan, -kInfinity)) EXPECT_TRUE(std::isnan(y));
    const auto single = with(-2.5f, -kInfinity);
    for (int64_t j = 0; j < cols; ++j) EXPECT_EQ(j == cols / 2 ? all() : none(), single[j]);
    if (cols == 1) continue;
    EXPECT_EQ(none(), with(-kInfinity, 3.0f)[cols / 2]);
    EXPECT_NEAR(log() ? -std::log(cols - 1.0) : 1.0 / (cols - 1.0), with(-kInfinity, 3.0f)[0], 2e-7 * cols);
    EXPECT_EQ(all(), with(3e38f, -3e38f)[cols / 2]);
    EXPECT_EQ(log() ? -200.0f : 0.0f, with(200.0f, 0.0f)[0]);
    EXPECT_NEAR(log() ? -std::log(double(cols)) : 1.0 / cols, with(1e-42f, -1e-42f)[0], 3e-7);
  }
}

// So far from 0 that a 0 from beside the row would drown it.
TEST_P(SoftmaxKernel, EqualElementsGetEqualShares) {
  for (const int64_t cols : {1, 2, 4, 64}) {
    for (const float y : row(std::vector<float>(cols, -200.25f))) {
      EXPECT_EQ(log() ? std::log(1.0f / static_cast<float>(cols)) : 1.0f / static_cast<float>(cols), y);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SoftmaxKernel, testing_support::over(softmax_implementations(), testing::Bool()));

TEST(Softmax, IsSplitAndDoesNothingWhenEmpty) {
  std::mt19937 random(12);
  const int64_t rows = 50, cols = 333, n = rows * cols;
  Guarded x = Guarded::normal(n, random), dy = Guarded::normal(n, random), y(n), y2(n), dx(n), dx2(n);
  softmax(SoftmaxForward{rows, cols, false, 1.0f, x.get(), y.get()});
  softmax(SoftmaxBackward{rows, cols, false, 1.0f, y.get(), dy.get(), dx.get()});
  {
    testing_support::Splitting splitting;
    softmax(SoftmaxForward{rows, cols, false, 1.0f, x.get(), y2.get()});
    softmax(SoftmaxBackward{rows, cols, false, 1.0f, y2.get(), dy.get(), dx2.get()});
  }
  EXPECT_EQ(y, y2);
  EXPECT_EQ(dx, dx2);
  softmax(SoftmaxForward{0, cols});
  softmax(SoftmaxForward{rows, 0});
  softmax(SoftmaxBackward{0, 0});
}

TEST(Softmax, TheTwinIsLast) {
  EXPECT_STREQ("ref", softmax_implementations().back().name);
  EXPECT_TRUE(softmax_implementations().back().runnable());
}

}  // namespace
}  // namespace hpqf::kernels
