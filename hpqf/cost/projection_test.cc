#include "hpqf/cost/projection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/base/random.h"
#include "hpqf/cost/power_law.h"

namespace hpqf::cost {
namespace {

// Approximately normal: the sum of 12 uniform numbers, less 6.
double noise(uint64_t seed, uint64_t i) {
  double sum = -6;
  for (uint64_t j = 0; j < 12; ++j) sum += base::random_uniform(seed, i, j);
  return sum;
}

std::vector<CurvePoint> curve(double a, double b, double c, int steps, double sigma = 0, uint64_t seed = 1) {
  std::vector<CurvePoint> points;
  for (int n = 1; n <= steps; ++n)
    points.push_back({double(n), a + b * std::pow(n, -c) + sigma * noise(seed, uint64_t(n))});
  return points;
}

TEST(PowerLaw, RecoversExactCurves) {
  for (const auto& [a, b, c] : {std::tuple{1.5, 4.0, 0.5}, {0.0, 3.0, 0.2}, {-2.0, 5.0, 1.0}, {0.3, 40.0, 1.7}}) {
    const PowerLaw fit = fit_power_law(bins(curve(a, b, c, 5000), 64));
    EXPECT_NEAR(fit.a, a, 0.02 * b) << c;
    EXPECT_NEAR(fit.c, c, 0.05 * c) << c;
    EXPECT_NEAR(fit.at(20000), a + b * std::pow(20000, -c), 0.01 * std::abs(a) + 0.02) << c;
  }
}

TEST(PowerLaw, InvertsItself) {
  const PowerLaw law{1, 4, 0.5};
  EXPECT_NEAR(law.step_for(law.at(123)), 123, 1e-9);
  EXPECT_TRUE(std::isinf(law.step_for(1)));
  EXPECT_TRUE(std::isinf(law.step_for(0.5)));
}

TEST(Projection, FindsTheStepOfAnExactCurve) {
  // 1 + 8 / sqrt(n) falls to 1.2 at n = 1600.
  const Projection p = project(curve(1, 8, 0.5, 500), 1.2, {});
  ASSERT_EQ(p.outlook, Outlook::projected) << p.reason;
  EXPECT_NEAR(p.steps.mid, 1600, 32);
  EXPECT_LE(p.steps.low, p.steps.mid);
  EXPECT_LE(p.steps.mid, p.steps.high);
}

TEST(Projection, BandHoldsTheTruthForMostNoises) {
  int inside = 0, told = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Projection p = project(curve(1, 8, 0.5, 1000, 0.1, seed), 1.2, {.resamples = 60});
    if (p.outlook != Outlook::projected) continue;
    ++told;
    // The 80 % interval, with a margin for the finite number of seeds.
    inside += p.steps.low * 0.9 <= 1600 && 1600 <= p.steps.high * 1.1;
  }
  EXPECT_GE(told, 15);
  EXPECT_GE(inside, told * 6 / 10) << told;
}

TEST(Projection, OutliersDoNotMatter) {
  auto points = curve(1, 8, 0.5, 1000, 0.02);
  const Projection clean = project(points, 1.2, {});
  for (size_t i = 7; i < points.size(); i += 97) points[i].value = 500;
  points[300].value = std::numeric_limits<double>::quiet_NaN();
  points[301].value = std::numeric_limits<double>::infinity();
  const Projection spiked = project(points, 1.2, {});
  ASSERT_EQ(clean.outlook, Outlook::projected) << clean.reason;
  ASSERT_EQ(spiked.outlook, Outlook::projected) << spiked.reason;
  EXPECT_NEAR(spiked.steps.mid / clean.steps.mid, 1, 0.1);
}

TEST(Projection, IsTheSameEveryTime) {
  const auto points = curve(1, 8, 0.5, 700, 0.05);
  const Projection a = project(points, 1.2, {.seed = 3}), b = project(points, 1.2, {.seed = 3});
  EXPECT_EQ(a.steps.low, b.steps.low);
  EXPECT_EQ(a.steps.high, b.steps.high);
  auto reversed = points;
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(project(reversed, 1.2, {.seed = 3}).steps.mid, a.steps.mid);
  EXPECT_NE(project(points, 1.2, {.seed = 4}).steps.low, a.steps.low);
}

TEST(Projection, RisingMetrics) {
  auto points = curve(-0.9, 2, 0.5, 400);  // accuracy 0.9 - 2 / sqrt(n)
  for (CurvePoint& p : points) p.value = -p.value;
  const Projection p = project(points, 0.85, {.lower_is_better = false});  // n = 1600
  ASSERT_EQ(p.outlook, Outlook::projected) << p.reason;
  EXPECT_NEAR(p.steps.mid, 1600, 50);
}

TEST(Projection, Reached) {
  const Projection p = project(curve(1, 8, 0.5, 1000), 1.5, {});  // at 256
  ASSERT_EQ(p.outlook, Outlook::reached);
  EXPECT_NEAR(p.steps.mid, 256, 20);
}

TEST(Projection, CannotTell) {
  const auto reason = [](const std::vector<CurvePoint>& points, double target) {
    const Projection p = project(points, target, {});
    EXPECT_EQ(p.outlook, Outlook::cannot_tell);
    return p.reason;
  };
  EXPECT_NE(reason({}, 1).find("too few"), std::string::npos);
  EXPECT_NE(reason(curve(1, 8, 0.5, 5), 1.2).find("too few"), std::string::npos);
  EXPECT_NE(reason(curve(1, 8, 0.5, 1000), 0.9).find("levels off"), std::string::npos);
  EXPECT_NE(reason(curve(1, 8, 0.5, 200), 1.01).find("times as many steps ahead"), std::string::npos);
  EXPECT_NE(reason(curve(2, 0, 1, 1000, 0.1), 0.5).find("noise"), std::string::npos);
  EXPECT_NE(reason(curve(1, 8, -0.2, 1000), 0.5).find("noise"), std::string::npos);  // it rises
  std::vector<CurvePoint> late;
  for (int n = 1000; n < 2000; ++n) late.push_back({double(n), 1 + 8 / std::sqrt(n)});
  EXPECT_NE(reason(late, 1.05).find("too short"), std::string::npos);
}

}  // namespace
}  // namespace hpqf::cost
