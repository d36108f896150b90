// Policies that act while training goes on: reallocation and schedule.
#include <gtest/gtest.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/policy/reallocate.h"
#include "hpqf/plan/policy/schedule.h"

namespace hpqf::plan {
namespace {

BlockFormat block(std::string_view text) { return formats::parse_block_format(text); }

Sensitivity two(double a4, double b4, double error = 0) {
  Sensitivity s;
  for (auto [name, score] : {std::pair{"a", a4}, {"b", b4}}) {
    LayerSensitivity l{name, LayerKind::linear, 100, 10, 100, std::nullopt, {}};
    l.scores = {{.operand = Operand::weight, .format = block("int8"), .score = 0.001},
                {.operand = Operand::weight, .format = block("int4"), .score = score, .standard_error = error}};
    s.layers.push_back(l);
  }
  return s;
}

std::string weight(const PrecisionPlan& plan, const char* layer) { return formats::to_string(plan.at(layer).weight); }

TEST(Average, MixesScoresAndTheirErrors) {
  const Sensitivity mean = average(two(0.1, 0.2, 0.03), two(0.3, 0.2, 0.04), 0.5);
  EXPECT_DOUBLE_EQ(mean.layers[0].scores[1].score, 0.2);
  EXPECT_DOUBLE_EQ(mean.layers[0].scores[1].standard_error, 0.025);
  EXPECT_DOUBLE_EQ(average(two(0.1, 0), two(0.3, 0), 0).layers[0].scores[1].score, 0.3);
  EXPECT_EQ(average(two(0.1, 0), two(INFINITY, 0), 0.9).layers[0].scores[1].score, INFINITY);
  EXPECT_DOUBLE_EQ(average(two(INFINITY, 0), two(0.1, 0), 0.9).layers[0].scores[1].score, 0.1);
  Sensitivity other = two(0, 0);
  other.layers[1].name = "c";
  EXPECT_THROW(average(two(0, 0), other, 0.9), Error);
  EXPECT_THROW(average(two(0, 0), two(0, 0), 1), Error);
}

TEST(Reallocate, OnlyWhenTheGainExceedsTheCost) {
  const Budget budget{.bits = 6};  // one of the two at int8
  const PrecisionPlan plan = allocate(two(0.2, 0.1), budget).plan;
  ASSERT_EQ(weight(plan, "a"), "int8");
  // Now b is more fragile by 0.05: swapping saves 0.05 and changes two layers.
  const Sensitivity now = two(0.15, 0.20);
  Reallocation r = reallocate(plan, now, budget, {}, {.change = 0.02, .layer = 0.02});
  EXPECT_NEAR(r.gain, 0.05, 1e-12);
  EXPECT_NEAR(r.cost, 0.06, 1e-12);
  EXPECT_TRUE(r.changes.empty());
  EXPECT_EQ(r.plan, plan);
  EXPECT_EQ(r.reason, "kept: predicted gain 0.05 nats, switching 2 layers costs 0.06");
  r = reallocate(plan, now, budget, {}, {.change = 0.02, .layer = 0.01});
  ASSERT_EQ(r.changes.size(), 2u);
  EXPECT_EQ(weight(r.plan, "a"), "int4");
  EXPECT_EQ(weight(r.plan, "b"), "int8");
  EXPECT_EQ(r.plan.at("a").reason, "reallocated: predicted gain 0.05 nats, switching 2 layers costs 0.04");
  // The same scores again: nothing to gain, however cheap a change is.
  EXPECT_TRUE(reallocate(r.plan, now, budget, {}, {}).changes.empty());
  EXPECT_THROW(reallocate(plan, now, budget, {}, {.change = -1}), Error);
}

TEST(Reallocate, WhatBreaksTheBudgetMustChange) {
  const PrecisionPlan plan = PrecisionPlan::uniform("int8");
  const Reallocation r = reallocate(plan, two(0.2, 0.1), {.bits = 6}, {}, {.change = 100});
  EXPECT_EQ(r.gain, INFINITY);
  EXPECT_EQ(weight(r.plan, "b"), "int4");
  EXPECT_EQ(r.plan.at("b").input, block("int8")) << "no budget decides inputs";
  EXPECT_EQ(r.plan.at("b").wgrad, block("int8"));
  EXPECT_EQ(weight(reallocate(PrecisionPlan::uniform("bf16"), two(0.2, 0.1), {.bits = 6}, {}, {}).plan, "a"), "int8")
      << "bf16 is on no menu";
}

const ModelFacts kModel{"M", {{"a", "Linear", LayerKind::linear, 1}, {"norm", "LayerNorm", LayerKind::norm, 1}}};

TEST(Schedule, StartsHighAndLowersWhenTheVarianceSettles) {
  const ScheduleRules rules{.start = {"fp32", "bf16"}, .window = 10};
  const PrecisionPlan target = PrecisionPlan::uniform("int8");
  PrecisionPlan plan = staged(target, kModel, 0, rules);
  EXPECT_EQ(weight(plan, "a"), "fp32");
  ScheduleState state;
  std::vector<int64_t> changed;
  // The loss falls steeply for 60 steps, then wobbles.
  for (int64_t step = 1; step <= 200; ++step) {
    const double loss =
        step <= 60 ? 10 * std::exp(-0.1 * static_cast<double>(step)) : 0.02 + 0.005 * static_cast<double>(step % 2);
    const ScheduleDecision d = advance(plan, target, kModel, state, step, loss, rules);
    if (!d.changes.empty()) changed.push_back(step);
    plan = d.plan;
    state = schedule_state_from_json(to_json(d.state));
    EXPECT_EQ(state, d.state);
  }
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_GT(changed[0], 60) << "not while it falls";
  EXPECT_EQ(changed[1], changed[0] + 20) << "two settled windows more";
  EXPECT_EQ(weight(plan, "a"), "int8");
  EXPECT_TRUE(plan.at("norm", LayerKind::norm).all_fp32());
}

TEST(Schedule, NonFiniteLossesAreLeftOut) {
  const ScheduleRules rules{.start = {"bf16"}, .window = 2};
  const PrecisionPlan target = PrecisionPlan::uniform("int8");
  const ScheduleDecision d = advance(staged(target, kModel, 0, rules), target, kModel, {}, 1, NAN, rules);
  EXPECT_EQ(d.state, ScheduleState{});
}

TEST(Schedule, TheLateRaiseGoesOneRungUp) {
  const ScheduleRules rules{.late = 0.25, .total_steps = 100};
  const PrecisionPlan target = PrecisionPlan::uniform("int8");
  PrecisionPlan plan = target;
  ScheduleState state;
  for (int64_t step = 1; step <= 100; ++step) {
    const ScheduleDecision d = advance(plan, target, kModel, state, step, 1, rules);
    EXPECT_EQ(!d.changes.empty(), step == 75) << step;
    plan = d.plan;
    state = d.state;
  }
  EXPECT_EQ(weight(plan, "a"), "int12");
  EXPECT_EQ(plan.at("a").input, block("int12"));
  EXPECT_EQ(plan.at("a").dgrad, block("int8"));
  EXPECT_EQ(plan.at("a").reason, "last 0.25 of 100 steps, at step 75");
}

TEST(Schedule, ALayerThatFellBackIsLeftAlone) {
  const ScheduleRules rules{.late = 0.5, .total_steps = 2};
  const PrecisionPlan target = PrecisionPlan::uniform("int8"),
                      plan = target.with_rule({"=a", uniform_precision("fp32", "overflow")});
  EXPECT_TRUE(advance(plan, target, kModel, {}, 1, 1, rules).changes.empty());
}

TEST(Schedule, RulesSurviveTheirJsonOrAreRefused) {
  const ScheduleRules rules{.start = {"fp32"}, .late = 0.1, .total_steps = 7};
  EXPECT_EQ(to_json(schedule_rules_from_json(to_json(rules))), to_json(rules));
  EXPECT_THROW(check(ScheduleRules{.start = {"fp33"}}), Error);
  EXPECT_THROW(check(ScheduleRules{.late = 0.1}), Error);
  EXPECT_THROW(check(ScheduleRules{.tolerance = 0}), Error);
  EXPECT_THROW(check(ScheduleRules{.window = 1}), Error);
}

}  // namespace
}  // namespace hpqf::plan
