#include "hpqf/cost/estimate.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"
#include "hpqf/cost/device_test.h"

namespace hpqf::cost {
namespace {

Workload work() {
  Workload w;
  w.ops = {linear("a", 1024, 4096, 4096, false)};
  return w;
}

TEST(Estimate, MultipliesTheStepOut) {
  const Offer offer = given_price(3, "EUR");
  const Training training{.samples = 1001, .step = {.batch = 2, .devices = 5}};
  const Estimate e = estimate(work(), PrecisionPlan(), "fp32", toy_device(), &offer, training);
  EXPECT_EQ(e.steps, 101);  // the last one is not full
  EXPECT_DOUBLE_EQ(e.seconds, 101 * e.step.total());
  EXPECT_DOUBLE_EQ(e.device_hours, e.seconds * 5 / 3600);
  EXPECT_DOUBLE_EQ(e.money.mid, 3 * e.device_hours);
  EXPECT_DOUBLE_EQ(e.energy->kwh, 0.2 * 1.26 * 1.2 * e.device_hours);
  EXPECT_DOUBLE_EQ(e.samples_per_second, 10 / e.step.total());
  EXPECT_EQ(e.currency, "EUR");
}

TEST(Estimate, ChangeComparesWithTheSameDevice) {
  const Offer offer = given_price(3, "EUR");
  const Training training{.samples = 1e6, .step = {.batch = 1, .left_out = {0, 0, 0}}};
  const Estimate fp32 = estimate(work(), PrecisionPlan(), "fp32", toy_device(), &offer, training);
  const Estimate bf16 = estimate(work(), PrecisionPlan::uniform("bf16"), "bf16", toy_device(), &offer, training);
  const Change c = change(fp32, bf16, &offer, {.hours = 10, .wage = 90});
  EXPECT_DOUBLE_EQ(c.ratio.mid, fp32.seconds / bf16.seconds);
  EXPECT_DOUBLE_EQ(c.ratio.low, c.ratio.mid * 0.85);
  EXPECT_NEAR(c.saved_money, c.saved * fp32.money.mid, 1e-6);
  EXPECT_NEAR(*c.break_even->mid, 900 / (3 * c.saved), 1e-6);
  // What a break-even means: at that many hours of fp32, the saving is the cost of the change.
  EXPECT_NEAR(*c.break_even->mid * 3 * c.saved, 900, 1e-6);
  EXPECT_FALSE(change(fp32, bf16, nullptr, {}).break_even);
}

TEST(Estimate, WhatNoFormatShortensPullsRatiosTowardsOne) {
  const Training training{.samples = 1e6, .step = {.batch = 1, .left_out = {0, 0.5, 1}}};
  const Estimate fp32 = estimate(work(), PrecisionPlan(), "fp32", toy_device(), nullptr, training);
  const Estimate bf16 = estimate(work(), PrecisionPlan::uniform("bf16"), "bf16", toy_device(), nullptr, training);
  const Change c = change(fp32, bf16, nullptr, {});
  const double a = fp32.step.roofline(), b = bf16.step.roofline();
  EXPECT_DOUBLE_EQ(c.ratio.mid, (a + 0.5 * b) / (b + 0.5 * b));
  EXPECT_DOUBLE_EQ(c.ratio.high, a / b * 1.15);
  EXPECT_DOUBLE_EQ(c.ratio.low, (a + b) / (2 * b) * 0.85);
}

TEST(Estimate, NeedsSomethingToTrain) {
  EXPECT_THROW(estimate(work(), PrecisionPlan(), "fp32", toy_device(), nullptr, {}), Error);
}

}  // namespace
}  // namespace hpqf::cost
