#include "hpqf/plan/policy/policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/policy/history.h"

namespace hpqf::plan {
namespace {

const ModelFacts kModel{"Net",
                        {{"a", "Linear", LayerKind::linear, 100},
                         {"b", "Linear", LayerKind::linear, 100},
                         {"norm", "LayerNorm", LayerKind::norm, 10}}};

PolicyInput input_at(int64_t step, const PrecisionPlan& plan) {
  PolicyInput input;
  input.step = step;
  input.plan = plan;
  input.model = kModel;
  return input;
}

OperandHealth saturated(const char* layer, int64_t count) {
  return {layer, Operand::input, 1000, 0, count, 0, 30.0, std::nullopt};
}

Sensitivity scores(double a4, double b4) {
  Sensitivity s;
  for (auto [name, score] : {std::pair{"a", a4}, {"b", b4}}) {
    LayerSensitivity l{name, LayerKind::linear, 100, 10, 100, std::nullopt, {}};
    for (auto [format, value] : {std::pair{"int8", 0.001}, {"int4", score}}) {
      FormatScore f;
      f.format = formats::parse_block_format(format);
      f.score = value;
      l.scores.push_back(f);
    }
    s.layers.push_back(l);
  }
  return s;
}

ReallocationRules reallocation() {
  ReallocationRules rules;
  rules.budget.bits = 6;
  rules.decay = 0;
  return rules;
}

PolicyPtr raises(std::string layer, std::string from, std::string to, Operand operand = Operand::weight) {
  return make_policy("mine", [=](const PolicyInput&, const std::string& state) {
    return PolicyDecision{{{layer, operand, from, to, "mine", {}, "because"}}, state};
  });
}

TEST(Policy, AUsersPolicyChangesThePlan) {
  PolicySet set({make_policy("counter", [](const PolicyInput& input, const std::string& state) {
    PolicyDecision d{{}, state == "{}" ? "{\"n\":1}" : "{\"n\":2}"};
    if (state != "{}") d.changes.push_back({"a", Operand::weight, "int8", "bf16", "test", {}, "second step"});
    return d;
  })});
  const PrecisionPlan plan = PrecisionPlan::uniform("int8");
  EXPECT_EQ(set.step(input_at(1, plan)).plan, plan);
  const PolicySet::Outcome outcome = set.step(input_at(2, plan));
  EXPECT_EQ(formats::to_string(outcome.plan.at("a").weight), "bf16");
  ASSERT_EQ(outcome.decisions.size(), 1u);
  EXPECT_EQ(outcome.decisions[0].epoch, 1);
  EXPECT_EQ(outcome.decisions[0].state, "{\"n\":1}") << "the state before";
  EXPECT_EQ(set.states().at("counter"), "{\"n\":2}");
}

TEST(Policy, WhatItReturnsIsChecked) {
  const PrecisionPlan plan = PrecisionPlan::uniform("int8");
  const std::pair<PolicyPtr, const char*> bad[] = {{raises("c", "int8", "bf16"), "one of the 3 layers of Net"},
                                                   {raises("norm", "fp32", "bf16"), "this is a norm"},
                                                   {raises("a", "int8", "int5"), "int5"},
                                                   {raises("a", "int8", "int8[1x1]"), "N of 2 or more"},
                                                   {raises("a", "int4", "bf16"), "a change made for this plan"},
                                                   {make_policy("mine",
                                                                [](const PolicyInput&, const std::string& s) {
                                                                  const PolicyChange c{
                                                                      "a", Operand::weight, "int8", "bf16", "", {}, ""};
                                                                  return PolicyDecision{{c, c}, s};
                                                                }),
                                                    "one change for a layer and role"}};
  for (const auto& [policy, allowed] : bad) {
    // A good policy before the bad one: its work is undone, too.
    PolicySet set({ladder_policy({}), policy});
    const auto before = set.states();
    PolicyInput input = input_at(1, plan);
    input.health = {saturated("b", 500)};
    try {
      set.step(input);
      FAIL() << allowed;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("\"mine\""), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(allowed), std::string::npos) << e.what();
    }
    EXPECT_EQ(set.states(), before);
  }
}

TEST(Policy, SetsRefuseTwoOfOneName) {
  EXPECT_THROW(PolicySet({ladder_policy({}), ladder_policy({})}), Error);
  EXPECT_THROW(PolicySet({nullptr}), Error);
  EXPECT_THROW(make_policy("x", nullptr), Error);
  PolicySet set({ladder_policy({})});
  EXPECT_THROW(set.restore({{"mine", "{}"}}), Error);
  EXPECT_NO_THROW(set.restore({{"ladder", "{\"tracks\":{}}"}}));
}

TEST(Policy, BuiltInPoliciesComeBackFromTheirOptions) {
  ReallocationRules rules = reallocation();
  rules.locks = {{"a", uniform_precision("int8"), "why"}};
  rules.weight = {formats::parse_block_format("int8")};
  ScheduleRules schedule;
  schedule.start = {"bf16"};
  for (const PolicyPtr& policy :
       {ladder_policy({}), schedule_policy(PrecisionPlan::uniform("int8"), schedule), reallocation_policy(rules)}) {
    const PolicyPtr again = policy_from_json(policy->name(), policy->options());
    ASSERT_TRUE(again) << policy->name();
    EXPECT_EQ(again->options(), policy->options());
    EXPECT_THROW(policy_from_json(policy->name(), "{"), Error);
  }
  EXPECT_EQ(policy_from_json("mine", "{}"), nullptr);
  ReallocationRules timed;
  timed.budget.seconds = 1;
  EXPECT_THROW(reallocation_policy(timed), Error);
}

// A run of 120 steps with all policies at work; its history.
std::string recorded(int64_t* decisions = nullptr) {
  const PrecisionPlan target = PrecisionPlan::uniform("int8");
  ScheduleRules schedule;
  schedule.start = {"bf16"};
  schedule.window = 5;
  LadderRules ladder;
  ladder.calm = 10;
  ladder.scope = Scope::operand;
  PolicySet set({schedule_policy(target, schedule), ladder_policy(ladder), reallocation_policy(reallocation()),
                 make_policy("mine", [](const PolicyInput& input, const std::string& state) {
                   PolicyDecision d{{}, state};
                   const std::string now = formats::to_string(input.plan.at("b").wgrad);
                   if (input.step == 50 && now != "fp32")
                     d.changes.push_back({"b", Operand::wgrad, now, "fp32", "mine", {{"odd", NAN}}, "step 50"});
                   return d;
                 })});
  PrecisionPlan plan = staged(target, kModel, 0, schedule);
  std::string history = history_start(plan, kModel, set.policies()) + '\n';
  for (int64_t step = 1; step <= 120; ++step) {
    PolicyInput input = input_at(step, plan);
    input.loss = 1 + 0.01 * static_cast<double>(step % 3);
    if (step % 40 == 7) input.health = {saturated("a", 500)};
    if (step % 30 == 0) input.sensitivity = scores(step % 60 ? 0.2 : 0.1, step % 60 ? 0.1 : 0.2);
    PolicySet::Outcome outcome = set.step(input);
    plan = outcome.plan;
    for (const Decided& decided : outcome.decisions) {
      history += history_line(decided, input) + '\n';
      if (decisions) ++*decisions;
    }
  }
  return history;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(History, EveryDecisionIsMadeAgainFromTheLogAlone) {
  int64_t decisions = 0;
  const std::string history = recorded(&decisions);
  EXPECT_EQ(history, recorded()) << "deterministic";
  const Replay r = replay(history);
  EXPECT_EQ(r.wrong, 0) << explain(r);
  EXPECT_EQ(r.only_applied, 1);
  EXPECT_EQ(r.recomputed, decisions - 1);
  EXPECT_GT(decisions, 6) << explain(r);
  for (const char* policy : {"ladder", "schedule", "reallocation"})
    EXPECT_NE(explain(r).find(policy), std::string::npos) << policy;
  EXPECT_EQ(formats::to_string(r.plan.at("b").wgrad), "fp32");
}

TEST(History, AChangedLogIsFound) {
  const std::string history = recorded();
  // Another observation, another limit, another result, a missing decision: each is noticed.
  EXPECT_GT(replay(replaced(history, "\"saturated\":500", "\"saturated\":5")).wrong, 0);
  EXPECT_GT(replay(replaced(history, "\"budget\":\"bits=6\"", "\"budget\":\"bits=8\"")).wrong, 0);
  EXPECT_GT(
      replay(replaced(history, "\"to\":\"fp32\",\"cause\":\"saturation\"", "\"to\":\"tf32\",\"cause\":\"saturation\""))
          .wrong,
      0);
  EXPECT_GT(replay(replaced(history, "\"epoch\":", "\"epoch\":1")).wrong, 0);
  const size_t second = history.find('\n') + 1, third = history.find('\n', second) + 1;
  EXPECT_GT(replay(history.substr(0, second) + history.substr(third)).wrong, 0);
  EXPECT_NE(explain(replay(replaced(history, "\"saturated\":500", "\"saturated\":5"))).find("WRONG"),
            std::string::npos);
}

TEST(History, DamagedFilesAreRefusedWithTheLine) {
  const std::string history = recorded();
  const std::string first = history.substr(0, history.find('\n') + 1);
  try {
    replay(first + "{\"step\":1\n");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.asked().find("line 2"), std::string::npos) << e.asked();
  }
  EXPECT_THROW(replay(""), Error);
  EXPECT_THROW(replay(history.substr(first.size())), Error) << "without its first line";
  // A run killed while it wrote the last line.
  const Replay cut = replay(history.substr(0, history.size() - 10));
  EXPECT_EQ(cut.wrong, 0);
  EXPECT_EQ(cut.entries.size() + 1, replay(history).entries.size());
}

}  // namespace
}  // namespace hpqf::plan
