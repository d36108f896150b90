// Every implementation against the formulas in extended precision: all magnitudes, ragged sizes with guards, in place,
// infinities and NaN.
#include "hpqf/kernels/activation.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "hpqf/base/c_api.h"
#include "hpqf/kernels/c_api.h"
#include "hpqf/kernels/guarded_test.h"

namespace hpqf::kernels {
namespace {

using testing_support::Guarded;
using testing_support::kUnit;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// 2 u of the tanh form.
long double twice_u(long double x) {
  return std::sqrt(8 / std::numbers::pi_v<long double>) * (x + 0.044715L * x * x * x);
}

long double value(Activation function, long double x) {
  switch (function) {
    case Activation::gelu:
      return x * std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2;
    case Activation::gelu_tanh:
      return x / (1 + std::exp(-twice_u(x)));
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return 0;
}

long double gradient(Activation function, long double x) {
  if (function == Activation::gelu) {
    const long double pi = std::numbers::pi_v<long double>;
    return std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * pi);
  }
  const bool silu = function == Activation::silu;
  const long double e = std::exp(silu ? -x : -twice_u(x));
  const long double slope = silu ? 1 : std::sqrt(8 / std::numbers::pi_v<long double>) * (1 + 3 * 0.044715L * x * x);
  return 1 / (1 + e) + x * slope / ((1 + e) * (1 + 1 / e));  // e / (1 + e)^2 without overflow
}

// The bounds of the header.
double value_bound(Activation function, double x, double y) {
  const double relative = function == Activation::gelu   ? 8
                          : function == Activation::silu ? 3.5
                                                         : 4 + 2.5 * std::max(0.0, static_cast<double>(-twice_u(x)));
  return relative * kUnit * std::abs(y) + 2e-36;
}
constexpr double kGradientBound = 4 * kUnit;

class ActivationKernel : public testing::TestWithParam<std::tuple<int, Activation>> {
 protected:
  const ActivationImplementation& kernel() const { return activation_implementations()[std::get<0>(GetParam())]; }
  Activation function() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (!kernel().runnable()) GTEST_SKIP() << kernel().name << " does not run on this CPU";
  }
  float value_of(float x) const {
    float y = 0;
    kernel().forward({function(), 1, 1, &x, nullptr, &y}, 0, 1);
    return y;
  }
  float gradient_of(float x) const {
    float dx = 0;
    const float dy = 1;
    kernel().backward({function(), 1, 1, &x, nullptr, &dy, &dx}, 0, 1);
    return dx;
  }
};

TEST_P(ActivationKernel, IsAsAccurateAsTheHeaderSays) {
  constexpr uint32_t kStep = 20011, kEnd = std::bit_cast<uint32_t>(200.0f);  // floats as integers, in order of size
  const int64_t n = 2 * (kEnd / kStep);
  Guarded x(n), y(n), dx(n), dy(std::vector<float>(n, 1.0f));
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::bit_cast<float>(static_cast<uint32_t>(i / 2) * kStep);
    x.get()[i] = i % 2 ? -magnitude : magnitude;
  }
  kernel().forward({function(), 1, n, x.get(), nullptr, y.get()}, 0, n);
  kernel().backward({function(), 1, n, x.get(), nullptr, dy.get(), dx.get()}, 0, n);
  for (int64_t i = 0; i < n; ++i) {
    const double expected = static_cast<double>(value(function(), x[i]));
    ASSERT_NEAR(expected, y[i], value_bound(function(), x[i], expected)) << x[i];
    ASSERT_NEAR(static_cast<double>(gradient(function(), x[i])), dx[i], kGradientBound) << x[i];
  }
}

TEST_P(ActivationKernel, TheTanhFormIsTheOneOfTorch) {
  if (function() != Activation::gelu_tanh) return;
  for (double x = -3; x < 6; x += 0.01) {
    const float at = static_cast<float>(x);
    const double u = std::sqrt(2 / std::numbers::pi) * (at + 0.044715 * at * at * at);
    EXPECT_NEAR(0.5 * at * (1 + std::tanh(u)), value_of(at), 1e-6);
  }
}

TEST_P(ActivationKernel, Limits) {
  EXPECT_TRUE(std::isnan(value_of(kNan)) && std::isnan(gradient_of(kNan)));
  EXPECT_TRUE(std::isnan(value_of(-kNan)) && std::isnan(gradient_of(std::bit_cast<float>(0x7f800001u))));
  EXPECT_EQ(kInfinity, value_of(kInfinity));
  EXPECT_EQ(0.0f, value_of(-kInfinity));
  EXPECT_EQ(1.0f, gradient_of(kInfinity));
  EXPECT_EQ(0.0f, gradient_of(-kInfinity));
  EXPECT_EQ(3e38f, value_of(3e38f));
  EXPECT_EQ(0.0f, value_of(-3e38f));
  EXPECT_EQ(1.0f, gradient_of(3e38f));
  EXPECT_EQ(0.0f, gradient_of(-3e38f));
  EXPECT_EQ(0.0f, value_of(0.0f));
  EXPECT_EQ(0.5f, gradient_of(0.0f));
  EXPECT_NEAR(5e-41f, value_of(1e-40f), 2e-45);
}

TEST_P(ActivationKernel, SizesBiasAndPlaces) {
  std::mt19937 random(5);
  for (const int64_t rows : {1, 3}) {
    for (const int64_t cols : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 100}) {
      for (const bool biased : {false, true}) {
        const int64_t n = rows * cols;
        Guarded x = Guarded::normal(n, random, 3.0f), dy = Guarded::normal(n, random), y(n), dx(n);
        Guarded bias = Guarded::normal(cols, random);
        const float* b = biased ? bias.get() : nullptr;
        kernel().forward({function(), rows, cols, x.get(), b, y.get()}, 0, n);
        kernel().backward({function(), rows, cols, x.get(), b, dy.get(), dx.get()}, 0, n);
        for (int64_t i = 0; i < n; ++i) {
          const float z = biased ? x[i] + bias[i % cols] : x[i];
          const double expected = static_cast<double>(value(function(), z));
          ASSERT_NEAR(expected, y[i], value_bound(function(), z, expected)) << rows << " x " << cols;
          ASSERT_NEAR(static_cast<double>(dy[i] * gradient(function(), z)), dx[i],
                      (kGradientBound + kUnit) * std::abs(dy[i]))
              << rows << " x " << cols;
          // Where an element stands, and how the work is split, changes nothing.
          Guarded alone(n);
          kernel().forward({function(), rows, cols, x.get(), b, alone.get()}, i, i + 1);
          ASSERT_EQ(y[i], alone[i]);
          ASSERT_TRUE(alone.intact());
        }
        Guarded in_x = x, in_dy = dy;
        kernel().forward({function(), rows, cols, in_x.get(), b, in_x.get()}, 0, n);
        kernel().backward({function(), rows, cols, x.get(), b, in_dy.get(), in_dy.get()}, 0, n);
        EXPECT_EQ(y, in_x);
        EXPECT_EQ(dx, in_dy);
        EXPECT_TRUE(y.intact() && dx.intact() && in_x.intact());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ActivationKernel,
                         testing_support::over(activation_implementations(),
                                               testing::Values(Activation::gelu, Activation::gelu_tanh,
                                                               Activation::silu)));

TEST(Activation, IsSplitAndDoesNothingWhenEmpty) {
  std::mt19937 random(6);
  const int64_t rows = 11, cols = 1021;
  Guarded x = Guarded::normal(rows * cols, random), bias = Guarded::normal(cols, random), dy = x;
  Guarded y(rows * cols), y2(rows * cols), dx(rows * cols), dx2(rows * cols);
  activation(ActivationForward{Activation::gelu, rows, cols, x.get(), bias.get(), y.get()});
  activation(ActivationBackward{Activation::gelu, rows, cols, x.get(), bias.get(), dy.get(), dx.get()});
  {
    testing_support::Splitting splitting;
    activation(ActivationForward{Activation::gelu, rows, cols, x.get(), bias.get(), y2.get()});
    activation(ActivationBackward{Activation::gelu, rows, cols, x.get(), bias.get(), dy.get(), dx2.get()});
  }
  EXPECT_EQ(y, y2);
  EXPECT_EQ(dx, dx2);
  activation(ActivationForward{Activation::gelu, 0, cols});
  activation(ActivationForward{Activation::gelu, rows, 0});
  activation(ActivationBackward{Activation::silu, 0, 0});
}

TEST(Activation, CallersInCNameAFunction) {
  const float x[2] = {1.0f, -1.0f};
  float y[2], expected[2];
  EXPECT_EQ(0, hpqf_activation("gelu_tanh", 1, 2, x, nullptr, y));
  activation(ActivationForward{Activation::gelu_tanh, 1, 2, x, nullptr, expected});
  EXPECT_EQ(expected[0], y[0]);
  EXPECT_EQ(expected[1], y[1]);
  EXPECT_EQ(-1, hpqf_activation("relu", 1, 2, x, nullptr, y));
  EXPECT_NE(std::string::npos, std::string(hpqf_last_error()).find("silu"));
}

TEST(Activation, TheTwinIsLast) {
  EXPECT_STREQ("ref", activation_implementations().back().name);
  EXPECT_TRUE(activation_implementations().back().runnable());
}

}  // namespace
}  // namespace hpqf::kernels
