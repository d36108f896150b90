#include "hpqf/plan/policy/ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

OperandHealth health(std::string layer, Operand operand = Operand::input) {
  return {std::move(layer), operand, 1000, 0, 0, 0, std::nullopt, std::nullopt};
}
OperandHealth saturated(int64_t count, Operand operand = Operand::input) {
  OperandHealth h = health("a", operand);
  h.saturated = count;
  return h;
}

struct Trainer {
  PrecisionPlan plan;
  LadderState state;
  LadderRules rules;
  int64_t step = 0;
  std::vector<PolicyChange> log;
  explicit Trainer(const char* format, LadderRules r = {})
      : plan(PrecisionPlan::uniform(format)), rules(std::move(r)) {}
  size_t feed(std::vector<OperandHealth> seen) {
    LadderDecision d = react(plan, state, ++step, seen, rules);
    plan = d.plan;
    state = d.state;
    log.insert(log.end(), d.changes.begin(), d.changes.end());
    return d.changes.size();
  }
  void calm(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) feed({health("a")});
  }
  std::string format(Operand operand = Operand::input, const char* layer = "a") const {
    const LayerPrecision p = plan.at(layer);
    return formats::to_string(format_of(p, operand));
  }
};

TEST(Ladder, NonFiniteResultsActAtOnceAndAlone) {
  Trainer t("int4");
  OperandHealth h = health("a");
  h.nonfinite = 3;
  EXPECT_EQ(t.feed({h, health("b")}), 4u) << "all operands of the layer";
  for (Operand operand : kOperands) EXPECT_EQ(t.format(operand), "int8");
  EXPECT_EQ(t.format(Operand::input, "b"), "int4");
  EXPECT_EQ(to_string(t.log[0]), "a: weight int4 -> int8, 3 finite values became non-finite at step 1, in input");
  EXPECT_EQ(t.log[1].cause, "nonfinite");
  EXPECT_EQ(t.log[1].numbers, (std::map<std::string, double>{{"seen", 3}, {"limit", 0}}));
  EXPECT_EQ(t.plan.at("a").reason, "3 finite values became non-finite at step 1, in input");
}

TEST(Ladder, NonFiniteGradientsWaitForTheLossScale) {
  Trainer t("fp16", {.scope = Scope::operand});
  OperandHealth h = health("a", Operand::dgrad);
  h.nonfinite = 1;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(t.feed({h}), 0u);
  EXPECT_EQ(t.feed({h}), 1u);
  EXPECT_EQ(t.format(Operand::dgrad), "fp32");
  EXPECT_EQ(t.format(Operand::wgrad), "fp16");
}

TEST(Ladder, SoftLimitsNeedPatienceHardOnesDoNot) {
  Trainer t("int4");
  EXPECT_EQ(t.feed({saturated(11)}), 0u);
  EXPECT_EQ(t.feed({saturated(11)}), 0u);
  EXPECT_EQ(t.feed({saturated(10)}), 0u) << "the limit itself is allowed; the row is broken";
  EXPECT_EQ(t.feed({saturated(11)}), 0u);
  EXPECT_EQ(t.feed({saturated(11)}), 0u);
  EXPECT_EQ(t.feed({saturated(11)}), 4u);
  EXPECT_EQ(t.format(), "int8");
  EXPECT_EQ(t.log.back().reason, "saturation 0.011 above 0.01 at step 6, in input");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(t.feed({saturated(50)}), 0u) << "cooling down";
  EXPECT_EQ(t.feed({saturated(101)}), 4u) << "hard";
  EXPECT_EQ(t.format(), "int12");
  EXPECT_EQ(t.feed({saturated(101)}), 4u) << "hard limits do not cool down";
  EXPECT_EQ(t.format(), "bf16");
}

TEST(Ladder, EveryCauseHasItsLimits) {
  const std::pair<const char*, std::function<void(OperandHealth&)>> causes[] = {
      {"underflow", [](OperandHealth& h) { h.underflow = 801; }},
      {"drift", [](OperandHealth& h) { h.drift = 2.1; }},
      {"drift", [](OperandHealth& h) { h.drift = NAN; }},
      {"sqnr", [](OperandHealth& h) { h.sqnr_db = 2.9; }},
      {"sqnr", [](OperandHealth& h) { h.sqnr_db = NAN; }},
      {"saturation", [](OperandHealth& h) { h.saturated = 101; }}};
  for (const auto& [cause, spoil] : causes) {
    Trainer t("fp8");
    OperandHealth h = health("a");
    spoil(h);
    EXPECT_EQ(t.feed({h}), 4u) << cause;
    EXPECT_EQ(t.log.at(0).cause, cause);
    EXPECT_EQ(t.format(Operand::dgrad), "bf16");
  }
  Trainer t("fp8");
  OperandHealth good = health("a");
  good.underflow = 300;
  good.drift = 0.5;
  good.sqnr_db = 10;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(t.feed({good}), 0u);
}

TEST(Ladder, ScopesLimitWhatRises) {
  Trainer operand("int4", {.scope = Scope::operand});
  operand.feed({saturated(500, Operand::wgrad)});
  EXPECT_EQ(operand.format(Operand::wgrad), "int8");
  EXPECT_EQ(operand.format(Operand::dgrad), "int4");
  Trainer only("int4", {.scope = Scope::dgrad});
  EXPECT_EQ(only.feed({saturated(500, Operand::wgrad)}), 0u);
  EXPECT_EQ(only.feed({saturated(500, Operand::dgrad)}), 1u);
  EXPECT_EQ(only.format(Operand::dgrad), "int8");
  Trainer wgrad("int4", {.scope = Scope::wgrad});
  EXPECT_EQ(wgrad.feed({saturated(500, Operand::wgrad), saturated(500, Operand::dgrad)}), 1u);
}

TEST(Ladder, CalmGivesBackOneFormatAtATime) {
  Trainer t("int4", {.calm = 50});
  t.feed({saturated(500)});
  t.feed({saturated(500)});
  ASSERT_EQ(t.format(), "int12");
  t.calm(49);
  EXPECT_EQ(t.format(), "int12");
  t.calm(1);
  EXPECT_EQ(t.format(), "int8");
  EXPECT_EQ(t.log.back().cause, "calm");
  t.calm(50);
  EXPECT_EQ(t.format(), "int4") << "home";
  t.calm(500);
  EXPECT_EQ(t.format(), "int4") << "never below home";
}

TEST(Ladder, CalmIsLessThanAllowed) {
  Trainer t("int4", {.calm = 10});
  t.feed({saturated(500)});
  for (int i = 0; i < 100; ++i) t.feed({saturated(6)});  // under the limit of 10, above its half
  EXPECT_EQ(t.format(), "int8");
  for (int i = 0; i < 10; ++i) t.feed({saturated(5)});
  EXPECT_EQ(t.format(), "int4");
}

TEST(Ladder, CalmDoublesWithEachRelapse) {
  Trainer t("int8", {.calm = 10});
  int64_t expected = 10;
  for (int relapse = 0; relapse < 6; ++relapse, expected *= 2) {
    t.feed({saturated(500)});
    ASSERT_EQ(t.format(), "int12");
    t.calm(expected - 1);
    EXPECT_EQ(t.format(), "int12") << relapse;
    t.calm(1);
    EXPECT_EQ(t.format(), "int8") << relapse;
  }
}

// Moves of one track over `steps` steps of a signal that sees the plan and does its worst.
int64_t moves(int64_t steps, const LadderRules& rules, const std::function<int64_t(const Trainer&)>& signal) {
  Trainer t("int4", rules);
  int64_t count = 0;
  for (int64_t i = 0; i < steps; ++i) count += t.feed({saturated(signal(t))}) > 0;
  return count;
}

TEST(Ladder, NeverFlapsWhateverTheSignal) {
  LadderRules rules{.calm = 10};
  constexpr int64_t kSteps = 20000;
  constexpr int kRungs = 4;  // int4, int8, int12, bf16, fp32
  const double bound = 2 * kRungs * (std::log2(double{kSteps} / 10 + 1) + 1);
  uint64_t random = 7;
  const std::pair<const char*, std::function<int64_t(const Trainer&)>> signals[] = {
      {"trouble in int4 only", [](const Trainer& t) { return t.format() == "int4" ? 500 : 0; }},
      {"all the way up after each return",
       [up = true](const Trainer& t) mutable {
         if (t.format() == "fp32") up = false;
         if (t.format() == "int4") up = true;
         return up ? 500 : 0;
       }},
      {"up one after each return",
       [](const Trainer& t) { return !t.log.empty() && t.log.back().cause == "calm" ? 500
                                     : t.log.empty()                                ? 500
                                                                                    : 0; }},
      {"every other step", [](const Trainer& t) { return t.step % 2 ? 500 : 0; }},
      {"every 11th step", [](const Trainer& t) { return t.step % 11 ? 0 : 500; }},
      {"every 1001st step", [](const Trainer& t) { return t.step % 1001 ? 0 : 500; }},
      {"random, soft and hard",
       [&random](const Trainer&) {
         random = random * 6364136223846793005u + 1442695040888963407u;
         return static_cast<int64_t>((random >> 40) % 400 == 0 ? 500 : (random >> 30) % 20);
       }},
      {"always", [](const Trainer&) { return 500; }}};
  for (const auto& [name, signal] : signals) {
    const int64_t count = moves(kSteps, rules, signal);
    EXPECT_GE(count, 1) << name;
    EXPECT_LE(static_cast<double>(count), bound) << name;
  }
  // Without doubling the first signal alone would move thousands of times: the bound is worth testing.
  rules.calm_most = 10;
  EXPECT_GT(static_cast<double>(moves(kSteps, rules, signals[0].second)), 10 * bound);
}

TEST(Ladder, WhatOthersChangedIsTheirs) {
  Trainer t("int4", {.calm = 10});
  t.feed({saturated(500)});
  t.plan = t.plan.with_rule({"=a", uniform_precision("fp32", "overflow")});
  t.calm(100);
  EXPECT_EQ(t.format(), "fp32");
}

TEST(Ladder, TheTopIsTheTop) {
  Trainer t("fp32");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(t.feed({saturated(900)}), 0u);
}

TEST(Ladder, OneNumberForUsers) {
  Trainer t("int4", with_fallback_threshold({}, 0.2));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(t.feed({saturated(200)}), 0u);
  EXPECT_EQ(t.feed({saturated(201)}), 4u) << "the hard limit was below: it moved up with the soft one";
  EXPECT_THROW(with_fallback_threshold({}, 0), Error);
  EXPECT_THROW(with_fallback_threshold({}, 1.5), Error);
}

TEST(Ladder, StateAndRulesSurviveTheirJson) {
  Trainer a("int4", {.calm = 10}), b("int4", {.calm = 10});
  for (int i = 0; i < 400; ++i) {
    OperandHealth h = saturated(i % 37 == 5 ? 500 : i % 3 * 5);
    h.sqnr_db = i % 50 == 3 ? NAN : 20 + 1.0 / 3;
    h.drift = 0.1;
    const std::vector<OperandHealth> read = health_from_json(to_json(std::span<const OperandHealth>({h})));
    a.feed({h});
    b.feed(read);
    ASSERT_EQ(a.state, b.state) << i;
    ASSERT_EQ(a.plan, b.plan) << i;
    b.state = ladder_state_from_json(to_json(b.state));
    b.rules = ladder_rules_from_json(to_json(b.rules));
    b.plan = PrecisionPlan::from_json(b.plan.to_json());
  }
  EXPECT_GT(a.log.size(), 8u);
  EXPECT_THROW(ladder_state_from_json(R"({"tracks":{"a":{}}})"), Error);
  EXPECT_THROW(ladder_state_from_json(R"({"tracks":[]})"), Error);
  EXPECT_THROW(health_from_json(R"([{"layer":"a","role":"inputs"}])"), Error);
}

TEST(Ladder, ImpossibleRules) {
  auto refused = [](LadderRules rules) { EXPECT_THROW(react(PrecisionPlan(), {}, 1, {}, rules), Error); };
  refused({.saturation = {0.2, 0.1}});
  refused({.sqnr_db = {3, 10}});
  refused({.patience = 0});
  refused({.calm = 0});
  refused({.release = 0});
  refused({.ladder = {{"int4", "int8"}, {"int8", "int4"}}});
  refused({.ladder = {{"int4", "int5"}}});
  EXPECT_TRUE(
      react(PrecisionPlan::uniform("int4"), {}, 1, std::vector{saturated(900)}, {.enabled = false}).changes.empty());
}

TEST(Change, OnlyAppliesToThePlanItWasMadeFor) {
  const PrecisionPlan plan = PrecisionPlan::uniform("int8");
  const PolicyChange change{"a", Operand::input, "int8", "bf16", "test", {}, "because"};
  const PrecisionPlan next = apply_changes(plan, {change});
  EXPECT_EQ(formats::to_string(next.at("a").input), "bf16");
  EXPECT_EQ(formats::to_string(next.at("a").weight), "int8");
  EXPECT_EQ(next.epoch(), 1);
  EXPECT_THROW(apply_changes(next, {change}), Error);
  const ModelFacts model{"M", {{"a", "Linear", LayerKind::linear, 1}, {"b", "Linear", LayerKind::linear, 1}}};
  EXPECT_EQ(changes_between(plan, next, model, "test"), std::vector{change});
}

}  // namespace
}  // namespace hpqf::plan
