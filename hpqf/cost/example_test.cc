#include "hpqf/cost/example.h"

#include <gtest/gtest.h>

#include "hpqf/cost/device_test.h"

namespace hpqf::cost {
namespace {

double line(const Example& example, const std::string& what) {
  for (const ExampleLine& l : example.lines)
    if (l.what == what) return l.value;
  ADD_FAILURE() << "no line " << what;
  return 0;
}

bool says(const Example& example, const char* words) {
  for (const std::string& sentence : example.verdict)
    if (sentence.find(words) != std::string::npos) return true;
  return false;
}

TEST(Example, ArithmeticOfTheClaim) {
  const Example e = gpt_100b_example(toy_device(), {}, given_price(2, "USD"), {.hours = 40, .wage = 100});
  EXPECT_DOUBLE_EQ(line(e, "money before over after"), 2.5);
  EXPECT_NEAR(line(e, "time before over after"), 1 / 0.6, 1e-12);
  EXPECT_NEAR(line(e, "devices before over after"), 1.5, 1e-12);
  EXPECT_DOUBLE_EQ(line(e, "device-hours before"), 600e3);
  EXPECT_DOUBLE_EQ(line(e, "device-hours after"), 240e3);
  EXPECT_NEAR(line(e, "saved by a device-hour of the old precision"), 1.2, 1e-12);
  EXPECT_NEAR(line(e, "effort that pays back in 1000 device-hours"), 1200, 1e-9);
  EXPECT_NEAR(line(e, "as a person's work"), 12, 1e-9);
  EXPECT_NEAR(line(e, "break-even with it"), 4000 / 1.2, 1e-6);
  EXPECT_NEAR(line(e, "memory, fp32 with Adam"), 16 * line(e, "parameters") / 1e12, 1e-9);
}

TEST(Example, SaysWhichBaselineTheClaimNeeds) {
  // Toy: bf16 8, tf32 4, fp32 1 TFLOP/s: products 8 times as fast from fp32, twice from tf32.
  const Example e = gpt_100b_example(toy_device(), {}, given_price(2, "USD"), {});
  ASSERT_EQ(e.transitions.size(), 2u);  // no fp8 there
  EXPECT_TRUE(e.transitions[0].reaches);
  EXPECT_GT(e.transitions[0].ratio, 4);
  EXPECT_FALSE(e.transitions[1].reaches);
  EXPECT_LT(e.transitions[1].ratio, 2.1);
  EXPECT_TRUE(says(e, "holds only against true fp32"));
  EXPECT_TRUE(says(e, "720 k and not 480 k"));
}

TEST(Example, AWeakerClaimIsWithinReach) {
  const Example e = gpt_100b_example(toy_device(), {}, given_price(2, "USD"), {}, {.before = 1.2e6, .after = 800e3});
  EXPECT_TRUE(says(e, "within reach"));
  EXPECT_FALSE(says(e, "only against true fp32"));
}

}  // namespace
}  // namespace hpqf::cost
