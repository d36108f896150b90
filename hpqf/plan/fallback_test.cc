#include "hpqf/plan/fallback.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

CastObservation cast(std::string layer, Role role, int64_t nonfinite_in, int64_t overflow,
                     std::string format = "fp16") {
  return {std::move(layer), role, std::move(format), 1024, nonfinite_in, overflow};
}

Observations skipped(int64_t step, std::vector<CastObservation> casts) { return {step, true, std::move(casts), {}}; }

Observations clean(int64_t step) { return {step, false, {}, {}}; }

TEST(Fallback, TheCulpritAloneIsRaised) {
  // Recorded from a network whose conv3 overflowed: a NaN reached the norm and everything behind it.
  const PrecisionPlan plan = PrecisionPlan::uniform("fp16");
  const Observations seen = skipped(7, {cast("conv3", Role::input, 0, 12), cast("conv4", Role::input, 900, 0),
                                        cast("fc", Role::input, 10, 3), cast("fc", Role::output_grad, 640, 0)});
  const FallbackDecision decision = react(plan, {}, seen, {});
  ASSERT_EQ(decision.reasons.size(), 1u);
  EXPECT_EQ(decision.reasons[0], "conv3: fp16 -> fp32, 12 finite inputs overflowed at step 7");
  EXPECT_TRUE(decision.plan.at("conv3").all_fp32());
  EXPECT_EQ(decision.plan.at("conv3").reason, "fallback: 12 finite inputs overflowed at step 7");
  for (const char* other : {"conv4", "fc", "conv3.child", ""})
    EXPECT_EQ(decision.plan.at(other), plan.at(other)) << other;
  EXPECT_EQ(decision.plan.epoch(), 1);
  EXPECT_TRUE(decision.state.forward.empty());
}

TEST(Fallback, NothingChangesOnCleanStepsOrWithoutACulprit) {
  const PrecisionPlan plan = PrecisionPlan::uniform("fp16");
  Observations overflow_without_skip = skipped(1, {cast("conv3", Role::input, 0, 12)});
  overflow_without_skip.skipped = false;
  Observations no_cast = skipped(2, {});
  no_cast.nonfinite_gradients = {"fc"};
  for (const Observations& seen : {clean(0), overflow_without_skip, no_cast, skipped(3, {cast("a", Role::input, 5, 0)}),
                                   skipped(4, {cast("a", Role::input, 5, 9)})}) {
    const FallbackDecision decision = react(plan, {}, seen, {});
    EXPECT_EQ(decision.plan, plan) << seen.step;
    EXPECT_EQ(decision.state, FallbackState{}) << seen.step;
    EXPECT_TRUE(decision.reasons.empty()) << seen.step;
  }
}

TEST(Fallback, ClippingIsNotACulprit) {
  const PrecisionPlan plan = PrecisionPlan::uniform("fp16").with_rule({"a", uniform_precision("fp8")});
  const Observations seen = skipped(1, {cast("a", Role::input, 0, 5, "fp8_e4m3"),
                                        cast("a", Role::weight, 0, 5, "int8[1x128]"), cast("b", Role::weight, 0, 1)});
  const FallbackDecision decision = react(plan, {}, seen, {});
  ASSERT_EQ(decision.reasons.size(), 1u);
  EXPECT_EQ(decision.reasons[0], "b: fp16 -> fp32, 1 finite weights overflowed at step 1");
}

TEST(Fallback, GradientsGetTheLossScaleAChanceFirst) {
  PrecisionPlan plan = PrecisionPlan::uniform("fp16");
  FallbackState state;
  for (int step = 1; step <= 7; ++step) {
    const FallbackDecision decision = react(plan, state, skipped(step, {cast("fc", Role::output_grad, 0, 3)}), {});
    EXPECT_EQ(decision.plan, plan);
    state = decision.state;
    EXPECT_EQ(state.gradient.at("fc"), step);
  }
  const FallbackDecision decision = react(plan, state, skipped(8, {cast("fc", Role::output_grad, 0, 3)}), {});
  ASSERT_EQ(decision.reasons.size(), 1u);
  EXPECT_EQ(decision.reasons[0],
            "fc: fp16 -> fp32, 3 finite output gradients overflowed at step 8, in skipped step 8 of this kind");
  EXPECT_TRUE(decision.plan.at("fc").all_fp32());
  EXPECT_TRUE(decision.state.gradient.empty());
}

TEST(Fallback, ACleanStreakForgets) {
  const PrecisionPlan plan = PrecisionPlan::uniform("fp16");
  FallbackState state = react(plan, {}, skipped(1, {cast("fc", Role::output_grad, 0, 3)}), {}).state;
  for (int step = 2; step <= 50; ++step) state = react(plan, state, clean(step), {}).state;
  EXPECT_EQ(state.gradient.at("fc"), 1);
  state = react(plan, state, skipped(51, {cast("fc", Role::output_grad, 0, 3)}), {}).state;
  EXPECT_EQ(state.gradient.at("fc"), 2) << "49 clean steps are no streak";
  for (int step = 52; step <= 101; ++step) state = react(plan, state, clean(step), {}).state;
  EXPECT_EQ(state, FallbackState{});
}

TEST(Fallback, AnIntermediateFormatIsLeftForFp32WhenItOverflowsToo) {
  const FallbackRules rules{.to = "bf16"};
  FallbackDecision decision =
      react(PrecisionPlan::uniform("fp16"), {}, skipped(1, {cast("a", Role::input, 0, 1)}), rules);
  EXPECT_EQ(decision.plan.at("a").weight, formats::parse_block_format("bf16"));
  decision = react(decision.plan, decision.state, skipped(2, {cast("a", Role::input, 0, 1, "bf16")}), rules);
  EXPECT_TRUE(decision.plan.at("a").all_fp32());
  EXPECT_EQ(decision.plan.rules().size(), 2u) << "the second rule for a replaced the first";
}

TEST(Fallback, OperandsInOtherFormatsStay) {
  LayerPrecision mixed = uniform_precision("fp16");
  mixed.weight = formats::parse_block_format("fp32");
  mixed.wgrad = formats::parse_block_format("bf16");
  const PrecisionPlan plan({{"*", mixed}});
  const LayerPrecision raised =
      react(plan, {}, skipped(1, {cast("a", Role::input, 0, 1)}), {.to = "bf16"}).plan.at("a");
  EXPECT_EQ(formats::to_string(raised.weight), "fp32") << "never lowered";
  EXPECT_EQ(formats::to_string(raised.input), "bf16");
  EXPECT_EQ(formats::to_string(raised.dgrad), "bf16");
  EXPECT_EQ(formats::to_string(raised.wgrad), "bf16");
}

TEST(Fallback, ALayerAlreadyRaisedStaysAsItIs) {
  const PrecisionPlan plan;
  const FallbackDecision decision = react(plan, {}, skipped(1, {cast("a", Role::input, 0, 1)}), {});
  EXPECT_EQ(decision.plan, plan);
  EXPECT_TRUE(decision.reasons.empty());
}

TEST(Fallback, TheModelItselfCanBeRaisedAlone) {
  const FallbackDecision decision =
      react(PrecisionPlan::uniform("fp16"), {}, skipped(1, {cast("", Role::input, 0, 1)}), {});
  EXPECT_TRUE(decision.plan.at("").all_fp32());
  EXPECT_FALSE(decision.plan.at("fc").all_fp32());
  EXPECT_EQ(decision.reasons.at(0).find("(model): "), 0u);
}

TEST(Fallback, DisabledOrImpossibleRules) {
  const PrecisionPlan plan = PrecisionPlan::uniform("fp16");
  const Observations seen = skipped(1, {cast("a", Role::input, 0, 1)});
  EXPECT_EQ(react(plan, {}, seen, {.enabled = false}).plan, plan);
  EXPECT_THROW(react(plan, {}, seen, {.forward_overflows = 0}), Error);
  EXPECT_THROW(react(plan, {}, seen, {.gradient_overflows = -1}), Error);
  EXPECT_THROW(react(plan, {}, seen, {.clean_streak = 0}), Error);
  EXPECT_THROW(react(plan, {}, seen, {.to = "fp33"}), Error);
}

TEST(Fallback, ReplaysTheSameFromARecord) {
  // Two runs over one recorded log agree in every state; so does one that goes through JSON after each step.
  std::vector<Observations> log;
  for (int step = 0; step < 300; ++step)
    log.push_back(step % 7 == 3 ? skipped(step, {cast(std::string(1, static_cast<char>('a' + step % 5)),
                                                      Role::output_grad, 0, 1 + step)})
                                : clean(step));
  PrecisionPlan a = PrecisionPlan::uniform("fp16"), b = a;
  FallbackState sa, sb;
  for (const Observations& seen : log) {
    const FallbackDecision da = react(a, sa, seen, {.gradient_overflows = 3});
    const FallbackDecision db = react(PrecisionPlan::from_json(b.to_json()), fallback_state_from_json(to_json(sb)),
                                      seen, {.gradient_overflows = 3});
    ASSERT_EQ(da.state, db.state);
    ASSERT_EQ(da.plan, db.plan);
    a = da.plan;
    b = db.plan;
    sa = da.state;
    sb = db.state;
  }
  EXPECT_EQ(a.epoch(), 5) << "each of the five layers was raised once";
}

TEST(Fallback, JsonRoundTripIsExact) {
  const FallbackState state{{{"conv1", 3}, {"", 1}, {"a \"b\".c", 2}}, {{"fc", INT64_MAX}}, 17};
  EXPECT_EQ(fallback_state_from_json(to_json(state)), state);
  EXPECT_EQ(fallback_state_from_json(to_json(FallbackState{})), FallbackState{});
  EXPECT_THROW(fallback_state_from_json(R"({"forward":{"a":1.5},"gradient":{},"clean_steps":0})"), Error);
  EXPECT_THROW(fallback_state_from_json(R"({"forward":{},"gradient":[],"clean_steps":0})"), Error);
  EXPECT_THROW(fallback_state_from_json(R"({"forward":{},"clean_steps":0})"), Error);
}

}  // namespace
}  // namespace hpqf::plan
