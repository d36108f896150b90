#include "hpqf/cost/break_even.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"
#include "hpqf/cost/energy.h"

namespace hpqf::cost {
namespace {

// 40 h at 100 and nothing else, price 4, ratio 2: half of 4 is saved an hour, 4000 / 2 hours.
TEST(BreakEven, ByHand) {
  const Conversion c{.hours = 40, .wage = 100};
  EXPECT_EQ(break_even(c, 2, 4).value(), 2000);
  // 10 + 30 GPU-hours at 4 more.
  const Conversion with_runs{.hours = 40, .wage = 100, .profiling_gpu_hours = 10, .validation_gpu_hours = 30};
  EXPECT_EQ(one_off(with_runs, 4), 4160);
  EXPECT_EQ(break_even(with_runs, 2, 4).value(), 2080);
}

TEST(BreakEven, NeverWithoutASaving) {
  EXPECT_FALSE(break_even({}, 1, 4));
  EXPECT_FALSE(break_even({}, 0.7, 4));
  EXPECT_EQ(to_string(break_even({}, Band{0.7, 0.8, 0.9}, Band{1, 2, 3})), "never");
}

TEST(BreakEven, RiskOfALostRunEatsTheSaving) {
  Conversion c{.hours = 40, .wage = 100, .rerun_risk = 0.25};
  EXPECT_EQ(break_even(c, 2, 4).value(), 4000);  // saves 0.5 - 0.25 of an hour
  c.rerun_risk = 0.5;
  EXPECT_FALSE(break_even(c, 2, 4));
}

TEST(BreakEven, BandIsOrdered) {
  const Conversion c{.hours = 40, .wage = 100};
  const BreakEven b = break_even(c, Band{1.6, 2, 2.5}, Band{2, 4, 5});
  EXPECT_DOUBLE_EQ(*b.best, 4000 / (5 * (1 - 1 / 2.5)));
  EXPECT_EQ(*b.mid, 2000);
  EXPECT_DOUBLE_EQ(*b.worst, 4000 / (2 * (1 - 1 / 1.6)));
  EXPECT_EQ(to_string(b), "2 k device-hours (1.33 k to 5.33 k)");
  EXPECT_EQ(to_string(break_even(c, Band{0.9, 1.25, 2}, Band{4, 4, 4})), "5 k device-hours (2 k to never)");
  EXPECT_EQ(to_string(break_even(c, Band{0.8, 0.95, 1.25}, Band{4, 4, 4})), "never (5 k device-hours at best)");
}

TEST(BreakEven, RatioBandGrowsWithTheErrors) {
  const Band band = ratio_band(2, 0.15, 0.25);
  EXPECT_DOUBLE_EQ(band.low, 1.6);
  EXPECT_DOUBLE_EQ(band.high, 2.4);
}

TEST(BreakEven, RefusesNonsense) {
  EXPECT_THROW(break_even({.hours = -1}, 2, 4), Error);
  EXPECT_THROW(break_even({.rerun_risk = 2}, 2, 4), Error);
  EXPECT_THROW(break_even({}, 0, 4), Error);
}

TEST(Energy, ByHand) {
  // 700 W x 100 h = 70 kWh, x 0.8 x 1.26 x 1.2.
  const auto e = energy(700, 100, {.utilisation = 0.8, .host_factor = 1.26, .pue = 1.2, .co2_grams = 500});
  ASSERT_TRUE(e);
  EXPECT_NEAR(e->kwh, 70 * 0.8 * 1.26 * 1.2, 1e-9);
  EXPECT_NEAR(*e->co2_kg, e->kwh / 2, 1e-9);
  EXPECT_FALSE(energy(700, 100, {})->co2_kg);
  EXPECT_FALSE(energy(0, 100, {}));  // unknown is not 0 kWh
  EXPECT_THROW(energy(700, 1, {.utilisation = 0}), Error);
  EXPECT_THROW(energy(700, 1, {.pue = 0.9}), Error);
}

}  // namespace
}  // namespace hpqf::cost
