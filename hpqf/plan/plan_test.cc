#include "hpqf/plan/plan.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

BlockFormat block(std::string_view text) { return formats::parse_block_format(text); }

ModelFacts resnet() {
  return {"ResNet",
          {{"", "ResNet", LayerKind::other, 0},
           {"conv1", "Conv2d", LayerKind::conv, 432},
           {"bn1", "BatchNorm2d", LayerKind::norm, 32},
           {"layer1", "Sequential", LayerKind::other, 0},
           {"layer1.conv1", "Conv2d", LayerKind::conv, 2304},
           {"layer1.conv2", "Conv2d", LayerKind::conv, 2304},
           {"fc", "Linear", LayerKind::linear, 650}}};
}

TEST(Match, NamesCoverWhatIsBelow) {
  EXPECT_TRUE(matches("conv1", "conv1"));
  EXPECT_TRUE(matches("conv1", "conv1.weight_norm"));
  EXPECT_FALSE(matches("conv1", "conv10"));
  EXPECT_FALSE(matches("conv1", "layer1.conv1"));
  EXPECT_TRUE(matches("layer1", "layer1.0.conv1"));
}

TEST(Match, Globs) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*", "a.b.c"));
  EXPECT_TRUE(matches("*.conv1", "layer1.0.conv1"));
  EXPECT_FALSE(matches("*.conv1", "conv1"));
  EXPECT_TRUE(matches("layer?.conv1", "layer1.conv1"));
  EXPECT_FALSE(matches("layer?.conv1", "layer12.conv1"));
  EXPECT_TRUE(matches("head.*", "head.out"));
  EXPECT_TRUE(matches("head.*", "head"));
  EXPECT_FALSE(matches("head.*", "header"));
  EXPECT_TRUE(matches("a*b*c", "axxbyyc"));
  EXPECT_TRUE(matches("a*b*c", "abbbc"));
  EXPECT_FALSE(matches("a*b*c", "axxc"));
  EXPECT_TRUE(matches("*attn", "h.0.attn.proj")) << "below a layer that the glob matches";
  EXPECT_FALSE(matches("?", ""));
}

TEST(Match, ExactNames) {
  EXPECT_TRUE(matches("=layer1", "layer1"));
  EXPECT_FALSE(matches("=layer1", "layer1.conv1"));
  EXPECT_TRUE(matches("=", ""));
  EXPECT_FALSE(matches("=", "conv1"));
  EXPECT_FALSE(matches("=*", "conv1"));
}

TEST(Match, HostilePatternEndsSoon) {
  const std::string pattern = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text(4000, 'a');
  EXPECT_FALSE(matches(pattern, text));
}

TEST(Precision, UniformSetsTheGemmOperandsOnly) {
  const LayerPrecision p = uniform_precision("bf16", "why");
  for (const BlockFormat* f : {&p.weight, &p.input, &p.dgrad, &p.wgrad}) EXPECT_EQ(*f, block("bf16"));
  for (const BlockFormat* f : {&p.saved, &p.master, &p.state, &p.wire}) EXPECT_EQ(*f, block("fp32"));
  EXPECT_EQ(p.accumulate, Format::fp32);
  EXPECT_EQ(p.reason, "why");
  EXPECT_FALSE(p.all_fp32());
  EXPECT_TRUE(uniform_precision("fp32").all_fp32());
}

TEST(Precision, Fp8IsTwoFormats) {
  const LayerPrecision p = uniform_precision("FP8[row]");
  EXPECT_EQ(p.weight, block("fp8_e4m3[row]"));
  EXPECT_EQ(p.input, block("fp8_e4m3[row]"));
  EXPECT_EQ(p.dgrad, block("fp8_e5m2[row]"));
  EXPECT_EQ(p.wgrad, block("fp8_e5m2[row]"));
  EXPECT_EQ(uniform_precision("fp8_e4m3").dgrad, block("fp8_e4m3")) << "a full name is taken literally";
}

TEST(Precision, Refusals) {
  EXPECT_CONTAINS(error_of([] { uniform_precision("auto"); }), "\"auto\"");
  EXPECT_CONTAINS(error_of([] { uniform_precision("fp17"); }), "fp16");
  EXPECT_CONTAINS(error_of([] { uniform_precision("int8[1x1]"); }), "a scale for every element");
  EXPECT_CONTAINS(error_of([] { uniform_precision("bf16[row]"); }), "bf16");
  EXPECT_THROW(uniform_precision(""), Error);
  EXPECT_THROW(uniform_precision("fp8[1x0]"), Error);
  EXPECT_NO_THROW(uniform_precision("int4")) << "legal also for gradients";

  for (const RoleField& role : role_fields().subspan(4)) {
    LayerPrecision p;
    p.*role.field = block("bf16");
    const std::string text = error_of([&] { PrecisionPlan({{"*", p}}); });
    EXPECT_CONTAINS(text, std::string("role \"") + role.name + "\": bf16");
    EXPECT_CONTAINS(text, "only fp32 is available in this version");
  }
  LayerPrecision p;
  p.accumulate = Format::bf16;
  EXPECT_CONTAINS(error_of([&] { PrecisionPlan({{"*", p}}); }), "\"accumulate\": bf16");
}

TEST(Precision, SameFormatsIgnoresTheReasonAlone) {
  const LayerPrecision a = uniform_precision("int8", "a"), b = uniform_precision("int8", "b");
  EXPECT_TRUE(a.same_formats(b));
  EXPECT_FALSE(a == b);
  for (const RoleField& role : role_fields()) {
    LayerPrecision c = a;
    c.*role.field = block("int8[1x128]");
    EXPECT_FALSE(a.same_formats(c)) << role.name;
  }
}

TEST(Plan, FirstMatchWinsAndTheLastRuleIsTotal) {
  const PrecisionPlan plan({{"conv1", uniform_precision("fp16")}, {"conv*", uniform_precision("bf16")}, {"*", {}}});
  EXPECT_EQ(plan.at("conv1").weight, block("fp16"));
  EXPECT_EQ(plan.at("conv1.sub").weight, block("fp16"));
  EXPECT_EQ(plan.at("conv2").weight, block("bf16"));
  EXPECT_EQ(plan.at("anything at all").weight, block("fp32"));
  EXPECT_EQ(plan.at("").weight, block("fp32"));
}

TEST(Plan, NeedsALastRuleForEverything) {
  EXPECT_CONTAINS(error_of([] { PrecisionPlan(std::vector<Rule>{}); }), "without rules");
  EXPECT_CONTAINS(error_of([] { PrecisionPlan({{"*", {}}, {"conv1", {}}}); }), "last rule is for \"conv1\"");
  EXPECT_CONTAINS(error_of([] { PrecisionPlan({{"", {}}, {"*", {}}}); }), "rule 0 with an empty layer pattern");
}

TEST(Plan, SomeKindsOfLayersStayInFp32WhateverTheRules) {
  const PrecisionPlan plan = PrecisionPlan::uniform("int8");
  for (LayerKind kind : {LayerKind::norm, LayerKind::softmax, LayerKind::loss, LayerKind::activation}) {
    EXPECT_TRUE(plan.at("x", kind).all_fp32()) << name(kind);
    EXPECT_EQ(plan.at("x", kind).reason, std::string("rule: ") + name(kind) + " in fp32");
  }
  for (LayerKind kind : {LayerKind::linear, LayerKind::conv, LayerKind::rnn, LayerKind::attention, LayerKind::other})
    EXPECT_FALSE(plan.at("x", kind).all_fp32()) << name(kind);
}

TEST(Plan, WithSensitiveKeepsNamedLayersInFp32) {
  const PrecisionPlan plan = PrecisionPlan::with_sensitive("fp16", {"conv1", " head.* "});
  ASSERT_EQ(plan.rules().size(), 3u);
  EXPECT_TRUE(plan.at("conv1").all_fp32());
  EXPECT_EQ(plan.at("conv1").reason, "sensitive: asked by the user");
  EXPECT_TRUE(plan.at("head.out").all_fp32());
  EXPECT_EQ(plan.at("layer1.conv1").weight, block("fp16"));
  EXPECT_THROW(PrecisionPlan::with_sensitive("fp16", {""}), Error);
  EXPECT_THROW(PrecisionPlan::with_sensitive("auto", {}), Error);
}

TEST(Plan, CheckNamesThePatternAndTheNearestLayers) {
  const ModelFacts model = resnet();
  EXPECT_NO_THROW(PrecisionPlan::with_sensitive("fp16", {"conv1", "layer1.*", "=layer1", "="}).check(model));
  std::string text = error_of([&] { PrecisionPlan::with_sensitive("fp16", {"fc", "conv11"}).check(model); });
  EXPECT_CONTAINS(text, "\"conv11\"");
  EXPECT_CONTAINS(text, "of ResNet");
  EXPECT_CONTAINS(text, "nearest names: conv1, ");
  EXPECT_CONTAINS(text, "rule 1");
  text = error_of([&] { PrecisionPlan::with_sensitive("fp16", {"layer9.*"}).check(model); });
  EXPECT_CONTAINS(text, "nearest names: layer1, ");
  text = error_of([&] { PrecisionPlan::with_sensitive("fp16", {"conv1"}).check(ModelFacts{}); });
  EXPECT_CONTAINS(text, "no named layers");
  EXPECT_NO_THROW(PrecisionPlan::uniform("fp16").check(ModelFacts{}));
}

TEST(Plan, WithRuleGoesFirstAndCountsTheEpoch) {
  const PrecisionPlan old = PrecisionPlan::uniform("fp16");
  const PrecisionPlan next = old.with_rule({"=conv1", uniform_precision("fp32", "r")});
  EXPECT_EQ(old.epoch(), 0);
  EXPECT_EQ(next.epoch(), 1);
  EXPECT_TRUE(next.at("conv1").all_fp32());
  EXPECT_FALSE(next.at("conv1.child").all_fp32());
  EXPECT_FALSE(old == next);
  // The same pattern again replaces the rule that can never win any more.
  const PrecisionPlan third = next.with_rule({"=conv1", uniform_precision("bf16")});
  EXPECT_EQ(third.rules().size(), 2u);
  EXPECT_EQ(third.epoch(), 2);
  const PrecisionPlan all = third.with_rule({"*", uniform_precision("bf16")});
  ASSERT_EQ(all.rules().size(), 1u);
  EXPECT_EQ(all.at("fc").weight, block("bf16"));
  EXPECT_THROW(old.with_rule({"", {}}), Error);
}

TEST(Diff, LayerByLayerAndRole) {
  const PrecisionPlan a = PrecisionPlan::uniform("fp16");
  LayerPrecision half = uniform_precision("fp16", "half raised");
  half.dgrad = block("fp32");
  const PrecisionPlan b = a.with_rule({"=layer1.conv1", half}).with_rule({"=fc", uniform_precision("fp32", "raised")});
  const PlanDiff diff = a.diff(b, resnet());
  ASSERT_EQ(diff.size(), 5u);
  EXPECT_EQ(diff[0].layer, "layer1.conv1");
  EXPECT_EQ(diff[0].role, "dgrad");
  EXPECT_EQ(diff[0].from, "fp16");
  EXPECT_EQ(diff[0].to, "fp32");
  EXPECT_EQ(diff[0].reason, "half raised");
  EXPECT_EQ(diff[1].layer, "fc");
  EXPECT_EQ(to_string(diff),
            "layer1.conv1: dgrad fp16 -> fp32 (half raised)\n"
            "fc: weight, input, dgrad, wgrad fp16 -> fp32 (raised)\n");
  EXPECT_TRUE(a.diff(a, resnet()).empty());
  EXPECT_TRUE(a.diff(PrecisionPlan::uniform("fp16", "another reason"), resnet()).empty());
}

TEST(Diff, NormsDoNotChange) {
  const PlanDiff diff = PrecisionPlan().diff(PrecisionPlan::uniform("bf16"), resnet());
  for (const Change& change : diff) EXPECT_NE(change.layer, "bn1");
  EXPECT_EQ(diff.size(), 6u * 4u);
  EXPECT_CONTAINS(to_string(diff), "(model): weight, input, dgrad, wgrad fp32 -> bf16\n");
}

TEST(Diff, RulesWithoutAModel) {
  const PrecisionPlan a = PrecisionPlan::with_sensitive("fp16", {"conv1"}),
                      b = PrecisionPlan::with_sensitive("bf16", {"fc"});
  EXPECT_EQ(to_string(a.diff(b, {})),
            "conv1: rule present -> absent\n"
            "*: weight, input, dgrad, wgrad fp16 -> bf16 (asked by the user)\n"
            "fc: rule absent -> present (sensitive: asked by the user)\n");
}

TEST(Role, NamesFindThemselves) {
  for (int i = 0; i < kRoleCount; ++i) EXPECT_EQ(find_role(name(static_cast<Role>(i))), static_cast<Role>(i));
  for (int i = 0; i <= static_cast<int>(LayerKind::other); ++i)
    EXPECT_EQ(find_layer_kind(name(static_cast<LayerKind>(i))), static_cast<LayerKind>(i));
  EXPECT_FALSE(find_role("weights"));
  EXPECT_FALSE(find_layer_kind(""));
}

}  // namespace
}  // namespace hpqf::plan
