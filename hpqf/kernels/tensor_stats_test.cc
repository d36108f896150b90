#include "hpqf/kernels/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hpqf/base/error.h"

namespace hpqf::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normal(size_t n, float mean = 0, float deviation = 1) {
  std::mt19937 random(7);
  std::normal_distribution<float> draw(mean, deviation);
  std::vector<float> x(n);
  for (float& value : x) value = draw(random);
  return x;
}

void expect_near(double a, double b, double relative) {
  EXPECT_LE(std::fabs(a - b), relative * std::fabs(b)) << a << " against " << b;
}

void expect_alike(const TensorStats& a, const TensorStats& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.infinite, b.infinite);
  EXPECT_EQ(a.zero, b.zero);
  EXPECT_EQ(a.underflow, b.underflow);
  EXPECT_EQ(a.overflow, b.overflow);
  EXPECT_EQ(a.max_abs, b.max_abs);
  EXPECT_NEAR(a.mean, b.mean, 1e-12 * (1 + std::fabs(b.mean)));
  expect_near(a.m2, b.m2, 1e-10);
  expect_near(a.m4, b.m4, 1e-10);
  EXPECT_NEAR(a.m3, b.m3, 1e-9 * std::pow(b.m2, 1.5));
}

TEST(TensorStats, EveryImplementationAgreesWithTheDefinition) {
  const TensorStatsImplementation& ref = tensor_stats_implementations().back();
  for (const TensorStatsImplementation& implementation : tensor_stats_implementations()) {
    if (!implementation.runnable()) {
      std::printf("cannot run here: %s\n", implementation.name);
      continue;
    }
    for (size_t n : {0u, 1u, 2u, 15u, 16u, 17u, 4095u, 4096u, 4097u, 65536u}) {
      std::vector<float> x = normal(n, 0.5f, 3);
      for (size_t i = 3; i < n; i += 97) x[i] = i % 2 ? kNan : -kInf;
      for (size_t i = 5; i < n; i += 31) x[i] = 0;
      const StatsRange range{0.25f, 4.0f};
      SCOPED_TRACE(std::string(implementation.name) + " " + std::to_string(n));
      expect_alike(implementation.piece(x.data(), static_cast<int64_t>(n), range),
                   ref.piece(x.data(), static_cast<int64_t>(n), range));
    }
  }
}

TEST(TensorStats, LongTensorsEqualTheDefinitionToo) {
  const std::vector<float> x = normal(200001, 1, 0.01f);  // raw fourth moments would cancel here
  const auto n = static_cast<int64_t>(x.size());
  const TensorStats s = tensor_stats(x.data(), n, {});
  expect_alike(s, tensor_stats_implementations().back().piece(x.data(), n, {}));
  EXPECT_NEAR(s.kurtosis(), 3, 0.05);
  EXPECT_NEAR(std::sqrt(s.variance()), 0.01, 1e-4);
}

TEST(TensorStats, NothingNonFiniteEntersASum) {
  const float x[] = {kNan, 3, -kInf, 4, kInf, 0};
  const TensorStats s = tensor_stats(x, 6);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.infinite, 2);
  EXPECT_EQ(s.zero, 1);
  EXPECT_DOUBLE_EQ(s.norm(), 5);
  EXPECT_DOUBLE_EQ(s.sum(), 7);
  EXPECT_EQ(s.max_abs, 4);
  const TensorStats none = tensor_stats(x, 1);
  EXPECT_EQ(none.norm(), 0);
  EXPECT_TRUE(std::isnan(none.kurtosis()));
}

TEST(TensorStats, SumsOfTheLargestFloatsStayFinite) {
  const std::vector<float> x(1000, std::numeric_limits<float>::max());
  EXPECT_NEAR(tensor_stats(x.data(), 1000).norm() / (std::sqrt(1000.0) * x[0]), 1, 1e-9);
}

TEST(TensorStats, RangesAreWhereTheCodecChanges) {
  for (const formats::FormatInfo& f : formats::all_formats()) {
    const StatsRange r = stats_range(f.format);
    SCOPED_TRACE(f.name);
    EXPECT_EQ(formats::round_to(f.format, r.flush), 0);
    EXPECT_NE(formats::round_to(f.format, std::nextafter(r.flush, kInf)), 0);
    EXPECT_FALSE(formats::overflows(f.format, r.largest));
    const float above = std::nextafter(r.largest, kInf);
    EXPECT_TRUE(std::isinf(above) || formats::overflows(f.format, above));
  }
  EXPECT_EQ(stats_range(Format::fp16).flush, std::ldexp(1.0f, -25));  // half the smallest subnormal ties to zero
  EXPECT_EQ(stats_range(Format::int8, 2.0f).flush, 1.0f);
  EXPECT_THROW(stats_range(Format::fp16, 0), Error);
}

TEST(TensorStats, UnderflowAndOverflowAreThoseOfTheCodec) {
  std::vector<float> x = normal(5000);
  for (float& value : x) value = std::exp2(value * 14);  // 2^-50 .. 2^50
  const TensorStats s = tensor_stats(x.data(), 5000, stats_range(Format::fp16));
  int64_t under = 0, over = 0;
  for (float value : x) {
    under += formats::round_to(Format::fp16, value) == 0;
    over += formats::overflows(Format::fp16, value);
  }
  EXPECT_GT(under, 0);
  EXPECT_GT(over, 0);
  EXPECT_EQ(s.underflow, under);
  EXPECT_EQ(s.overflow, over);
}

TEST(QuantisationError, DecibelsByHand) {
  const float x[] = {1, 1, 1, 1, 0.001f, kNan}, q[] = {1.1f, 0.9f, 1.1f, 0.9f, 0, kNan};
  const QuantisationError e = quantisation_error(x, q, 6);
  EXPECT_EQ(e.flushed, 1);
  EXPECT_EQ(e.lost, 1);
  EXPECT_NEAR(e.sqnr_db(), 20, 1e-3);
  EXPECT_EQ(quantisation_error(x, x, 4).sqnr_db(), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(quantisation_error(nullptr, nullptr, 0).sqnr_db()));
}

}  // namespace
}  // namespace hpqf::kernels
