#include "hpqf/plan/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/base/error.h"
#include "hpqf/base/random.h"

namespace hpqf::plan {
namespace {

RangeObservation seen(float amax, Format format = Format::fp16) {
  return {.layer = "a", .role = Role::input, .format = format, .amax = amax, .elements = 1};
}

TEST(RangeExponent, IsTheLargestThatLeavesTheMargin) {
  for (const Format format : {Format::fp16, Format::fp8_e4m3, Format::fp8_e5m2}) {
    const double largest = formats::info(format).largest;
    for (const int margin : {0, 2, 5}) {
      for (int i = 0; i < 2000; ++i) {
        const uint32_t bits = base::random_bits(7, static_cast<uint64_t>(margin), static_cast<uint64_t>(i));
        const float amax =
            std::ldexp(1 + static_cast<float>(bits & 0xffff) / 65536.0f, static_cast<int>(bits >> 16) % 90 - 45);
        const int e = range_exponent(format, amax, margin);
        ASSERT_LE(std::ldexp(amax, e), std::ldexp(largest, -margin)) << amax;
        ASSERT_GT(std::ldexp(amax, e + 1), std::ldexp(largest, -margin)) << amax;
      }
    }
  }
  EXPECT_EQ(range_exponent(Format::fp16, 65504.0f, 0), 0);
  EXPECT_EQ(range_exponent(Format::fp16, std::nextafter(65504.0f, 1e9f), 0), -1);
}

TEST(RangeExponent, StaysWithinItsBoundsAndSaysNothingOfNothing) {
  EXPECT_EQ(range_exponent(Format::fp16, std::numeric_limits<float>::denorm_min()), kMostExponent);
  EXPECT_EQ(range_exponent(Format::fp8_e4m3, std::numeric_limits<float>::max()), -kMostExponent);
  for (const float amax :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(range_exponent(Format::fp16, amax), 0);
  for (const Format format : {Format::fp32, Format::tf32, Format::bf16}) EXPECT_EQ(range_exponent(format, 1e30f), 0);
}

TEST(FollowRanges, TakesTheLargestOfTheWindow) {
  const RangeRules rules{.enabled = true, .window = 3, .margin = 2};
  RangeState state;
  int exponents[6];
  const float amax[] = {4096, 65536, 16, 16, 16, 0};  // the fifth has left the window; zero says nothing
  for (int i = 0; i < 6; ++i) {
    state = follow_ranges(std::move(state), {seen(amax[i])}, rules);
    exponents[i] = state.sites.at({"a", Role::input}).exponent;
  }
  EXPECT_EQ(std::vector<int>(exponents, exponents + 6), (std::vector<int>{1, -3, -3, -3, 9, 9}));
  EXPECT_EQ(state.sites.at({"a", Role::input}).window.size(), 3u);
}

// Growth of 4 a step stays inside the margin of two binades; a jump by 64 is right again after one step.
TEST(FollowRanges, AbsorbsGrowthWithinTheMarginAndAJumpInOneStep) {
  const RangeRules rules{.enabled = true};
  RangeState state;
  float amax = 1;
  state = follow_ranges(std::move(state), {seen(amax)}, rules);
  for (int step = 0; step < 20; ++step) {
    amax *= 4;
    ASSERT_LE(std::ldexp(amax, state.sites.at({"a", Role::input}).exponent), 65504.0f) << step;
    state = follow_ranges(std::move(state), {seen(amax)}, rules);
  }
  amax *= 64;
  EXPECT_GT(std::ldexp(amax, state.sites.at({"a", Role::input}).exponent), 65504.0f);
  state = follow_ranges(std::move(state), {seen(amax)}, rules);
  EXPECT_LE(std::ldexp(amax, state.sites.at({"a", Role::input}).exponent), 65504.0f);
}

TEST(FollowRanges, AChangedFormatTakesItsExponentFromTheSameWindow) {
  const RangeRules rules{.enabled = true};
  RangeState state = follow_ranges({}, {seen(100, Format::fp16)}, rules);
  state = follow_ranges(std::move(state), {seen(1, Format::fp8_e4m3)}, rules);
  EXPECT_EQ(state.sites.at({"a", Role::input}).exponent, range_exponent(Format::fp8_e4m3, 100));
}

TEST(FollowRanges, LayersAndRolesAreApartAndCountsAddUp) {
  RangeObservation clipped = seen(8);
  clipped.clipped = 3, clipped.recasts = 1;
  RangeObservation gradient = seen(1e-6f);
  gradient.role = Role::output_grad;
  RangeState state = follow_ranges({}, {clipped, gradient}, {.enabled = true});
  state = follow_ranges(std::move(state), {clipped}, {.enabled = true});
  EXPECT_EQ(state.sites.at({"a", Role::input}).clipped, 6);
  EXPECT_EQ(state.sites.at({"a", Role::input}).recasts, 2);
  EXPECT_GT(state.sites.at({"a", Role::output_grad}).exponent, 20);
  EXPECT_EQ(range_state_from_json(to_json(state)), state);
}

TEST(FollowRanges, RefusesRulesThatMeanNothingAndRecordsThatAreNone) {
  EXPECT_THROW(check(RangeRules{.window = 0}), Error);
  EXPECT_THROW(check(RangeRules{.margin = -1}), Error);
  EXPECT_THROW(range_state_from_json("{}"), Error);
  EXPECT_THROW(
      range_state_from_json(
          R"({"sites": [{"layer": "a", "role": "output", "window": [], "exponent": 0, "clipped": 0, "recasts": 0}]})"),
      Error);
  EXPECT_THROW(
      range_state_from_json(
          R"({"sites": [{"layer": "a", "role": "input", "window": [-1], "exponent": 0, "clipped": 0, "recasts": 0}]})"),
      Error);
}

}  // namespace
}  // namespace hpqf::plan
