#include "hpqf/observe/run/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpqf::observe {
namespace {

double value(int64_t step) { return std::sin(0.01 * static_cast<double>(step)) + 1e-6 * static_cast<double>(step); }

// Whatever the length: every bucket says of its steps what going over them says.
TEST(Series, BucketsSayWhatTheirPointsSay) {
  for (const int64_t steps : {1, 7, 64, 65, 100, 128, 129, 1000, 12345}) {
    Series series(64);
    for (int64_t step = 1; step <= steps; ++step) series.add(step, value(step));
    EXPECT_LE(series.buckets().size(), 64u);
    EXPECT_TRUE(steps <= 64 || series.buckets().size() >= 32u);
    EXPECT_EQ(series.points(), steps);
    int64_t next = 1;
    for (const Series::Bucket& b : series.buckets()) {
      ASSERT_EQ(b.first, next) << "no step is missing or twice";
      double low = 9, high = -9, sum = 0;
      for (int64_t step = b.first; step <= b.last; ++step) {
        low = std::min(low, value(step));
        high = std::max(high, value(step));
        sum += value(step);
      }
      EXPECT_EQ(b.min, low);
      EXPECT_EQ(b.max, high);
      EXPECT_EQ(b.count, b.last - b.first + 1);
      EXPECT_NEAR(b.sum, sum, 1e-9);
      next = b.last + 1;
    }
    EXPECT_EQ(next, steps + 1);
    EXPECT_EQ(series.last(), value(steps));
  }
}

TEST(Series, PointsThatAreNotFinite) {
  Series series(4);
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  int64_t step = 0;
  for (const double v : {1.0, nan, 3.0, inf, nan, -inf, 7.0, 8.0}) series.add(++step, v);
  EXPECT_EQ(series.points(), 8);
  EXPECT_EQ(series.nonfinite(), 4);
  ASSERT_EQ(series.buckets().size(), 4u);
  EXPECT_EQ(series.buckets()[0].mean(), 1);
  EXPECT_EQ(series.buckets()[1].max, 3) << "the infinity does not count";
  EXPECT_EQ(series.buckets()[2].count, 0);
  EXPECT_TRUE(std::isnan(series.buckets()[2].mean()));
  EXPECT_EQ(series.buckets()[3].mean(), 7.5);
}

TEST(Series, GoingBackDropsWhatWasThere) {
  Series series(64);
  for (int64_t step = 1; step <= 50; ++step) series.add(step, 1);
  for (int64_t step = 31; step <= 40; ++step) series.add(step, 2);
  EXPECT_EQ(series.points(), 40);
  EXPECT_EQ(series.buckets().size(), 40u);
  EXPECT_EQ(series.buckets()[29].sum, 1);
  EXPECT_EQ(series.buckets()[30].sum, 2);
  EXPECT_EQ(series.buckets().back().last, 40);
  series.add(1, 5);
  EXPECT_EQ(series.points(), 1);
}

TEST(Series, SmoothingKeepsConstantsAndDoesNotLag) {
  Series constant(64), line(64), gaps(64);
  for (int64_t step = 1; step <= 64; ++step) {
    constant.add(step, 3);
    line.add(step, static_cast<double>(step));
    gaps.add(step, step % 2 ? std::nan("") : 3);
  }
  for (const double v : smoothed(constant, 0.2)) EXPECT_NEAR(v, 3, 1e-12);
  for (const double v : smoothed(gaps, 0.2)) EXPECT_NEAR(v, 3, 1e-12);
  const std::vector<double> ramp = smoothed(line, 0.1);
  for (size_t i = 20; i < 44; ++i) EXPECT_NEAR(ramp[i], static_cast<double>(i + 1), 0.2) << "in the middle";
  EXPECT_TRUE(smoothed(Series(), 0.1).empty());
  Series nothing;
  nothing.add(1, std::nan(""));
  EXPECT_TRUE(std::isnan(smoothed(nothing, 0.1)[0]));
}

}  // namespace
}  // namespace hpqf::observe
