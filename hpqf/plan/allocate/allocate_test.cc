#include "hpqf/plan/allocate/allocate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/threshold.h"

namespace hpqf::plan {
namespace {

BlockFormat block(std::string_view text) { return formats::parse_block_format(text); }

FormatScore scored(Operand operand, const char* format, double score, double standard_error = 0) {
  FormatScore s{.operand = operand, .format = block(format), .score = score, .standard_error = standard_error};
  s.terms = 256;
  return s;
}

LayerSensitivity layer(std::string name, int64_t weights, double w8, double w4, double x8 = 0, double x4 = 0) {
  LayerSensitivity l{std::move(name), LayerKind::linear, weights, 64, weights, std::nullopt, {}};
  l.scores = {scored(Operand::weight, "int8", w8), scored(Operand::weight, "int4", w4)};
  if (x4 > 0) {
    l.scores.push_back(scored(Operand::input, "int8", x8));
    l.scores.push_back(scored(Operand::input, "int4", x4));
  }
  return l;
}

// b is the most fragile, c the largest.
Sensitivity abc() {
  Sensitivity s{.model = "Net"};
  s.layers = {layer("a", 1000, 0.001, 0.10), layer("b", 1000, 0.002, 0.50), layer("c", 2000, 0.001, 0.12)};
  return s;
}

std::string weight_of(const PrecisionPlan& plan, const char* name) { return formats::to_string(plan.at(name).weight); }

std::string error_of(auto call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << text

TEST(Allocate, BitsGoWhereTheyAreWorthMost) {
  // 4000 weights at 5 bits: 4000 bits above int4, which raise one small layer. b saves most.
  const Allocation a = allocate(abc(), {.bits = 5});
  EXPECT_EQ(weight_of(a.plan, "a"), "int4");
  EXPECT_EQ(weight_of(a.plan, "b"), "int8");
  EXPECT_EQ(weight_of(a.plan, "c"), "int4");
  EXPECT_DOUBLE_EQ(a.loss, 0.10 + 0.002 + 0.12);
  EXPECT_TRUE(a.exact);
  ASSERT_EQ(a.amounts.size(), 1u);
  EXPECT_DOUBLE_EQ(a.amounts[0].value, 5);
  EXPECT_DOUBLE_EQ(a.amounts[0].limit, 5);
  EXPECT_EQ(a.plan.at("b").reason, "allocated for bits=5: 0.002 nats predicted");
  EXPECT_EQ(a.plan.at("b").input, block("fp32")) << "no budget limits inputs";
  EXPECT_TRUE(a.plan.at("unknown").all_fp32());
  // At 6 bits: a and b, or c alone.
  const Allocation six = allocate(abc(), {.bits = 6});
  EXPECT_EQ(weight_of(six.plan, "a") + weight_of(six.plan, "b") + weight_of(six.plan, "c"), "int8int8int4");
}

TEST(Allocate, BytesCountTheScalesOfBlocks) {
  const Allocation a = allocate(abc(), {.bytes = 1e9});
  // int8 1x64, fp32 scales: 1000 weights have 16 blocks, 2000 have 32.
  EXPECT_DOUBLE_EQ(a.amounts[0].value, 4000 + 4 * (16 + 16 + 32));
  // int4 1x32: 2000 bytes of codes and 32 + 32 + 63 scales.
  EXPECT_CONTAINS(error_of([] { allocate(abc(), {.bytes = 2000}); }), "smallest possible: bytes 2508");
}

TEST(Allocate, SaysTheSmallestPossibleInTheUsersUnit) {
  const std::string text = error_of([] { allocate(abc(), {.bits = 3.9}); });
  EXPECT_CONTAINS(text, "an allocation with bits=3.9");
  EXPECT_CONTAINS(text, "the smallest possible: bits 4\n");
  EXPECT_NO_THROW(allocate(abc(), {.bits = 4}));
}

TEST(Allocate, StandardErrorsCountAgainstAChoice) {
  Sensitivity s = abc();
  s.layers[0].scores[1] = scored(Operand::weight, "int4", 0.49, 0.3);
  EXPECT_EQ(weight_of(allocate(s, {.bits = 5}, {.standard_errors = 0}).plan, "b"), "int8");
  EXPECT_EQ(weight_of(allocate(s, {.bits = 5}).plan, "a"), "int8") << "0.49 + 0.3 is above 0.50";
}

TEST(Allocate, ScoresNeverFallWithFewerBits) {
  LayerSensitivity l = layer("a", 10, 0.2, 0.1);
  l.scores.push_back(scored(Operand::weight, "fp16", 0.05));
  EXPECT_DOUBLE_EQ(solver_score(l, Operand::weight, block("int4"), 1), 0.2);
  EXPECT_DOUBLE_EQ(solver_score(l, Operand::weight, block("int8"), 1), 0.2);
  EXPECT_DOUBLE_EQ(solver_score(l, Operand::weight, block("fp16"), 1), 0.05);
  l.scores[2].score = INFINITY;  // fp16 overflows: that says nothing of int8
  EXPECT_DOUBLE_EQ(solver_score(l, Operand::weight, block("int4"), 1), 0.2);
  EXPECT_EQ(solver_score(l, Operand::weight, block("fp16"), 1), INFINITY);
  EXPECT_EQ(solver_score(l, Operand::input, block("int8"), 1), INFINITY) << "not measured";
}

TEST(Allocate, TiedLayersTakeOneChoice) {
  Sensitivity s = abc();
  s.ties = {{"b", "c"}};  // 3000 weights together: 5 bits cannot raise them
  const Allocation a = allocate(s, {.bits = 5});
  EXPECT_EQ(weight_of(a.plan, "a"), "int8");
  EXPECT_EQ(weight_of(a.plan, "b"), "int4");
  EXPECT_EQ(weight_of(a.plan, "c"), "int4");
  const Allocation more = allocate(s, {.bits = 7});
  EXPECT_EQ(weight_of(more.plan, "a") + weight_of(more.plan, "b") + weight_of(more.plan, "c"), "int4int8int8");
}

TEST(Allocate, LockedLayersKeepTheirFormatsAndSayWhy) {
  AllocationOptions options;
  options.locks = {{"c", uniform_precision("int8"), "shared with the runtime"}};
  const Allocation a = allocate(abc(), {.bits = 7}, options);  // 28,000 bits, 16,000 locked: one more
  EXPECT_EQ(weight_of(a.plan, "c"), "int8");
  EXPECT_EQ(a.plan.at("c").input, block("int8"));
  EXPECT_EQ(a.plan.at("c").reason, "locked: shared with the runtime");
  EXPECT_EQ(weight_of(a.plan, "a") + weight_of(a.plan, "b"), "int4int8");
  options.locks[0].layers = "d";
  EXPECT_CONTAINS(error_of([&] { allocate(abc(), {.bits = 7}, options); }), "\"d\"");
}

TEST(Allocate, AHardLimitOfTheScoreRemovesChoices) {
  AllocationOptions options;
  options.forbid_above = 0.2;
  EXPECT_EQ(weight_of(allocate(abc(), {.bits = 8}, options).plan, "b"), "int8");
  EXPECT_CONTAINS(error_of([&] { allocate(abc(), {.bits = 4}, options); }), "bits 5");
  options.forbid_above = 0.0015;
  EXPECT_EQ(weight_of(allocate(abc(), {.bits = 32}, options).plan, "b"), "fp32") << "nothing else is left";
}

TEST(Allocate, BopsDecideWeightsAndInputsTogether) {
  Sensitivity s;
  s.layers = {layer("a", 100, 0.01, 0.2, 0.01, 0.3), layer("b", 100, 0.01, 0.2, 0.01, 0.9)};
  // int8 x int8 is 64 bit operations a multiply-add; 96 a pair of layers: one 8 x 8 and one 8 x 4 (or 4 x 8).
  const Allocation a = allocate(s, {.bops = 100 * 96});
  EXPECT_LE(a.amounts[0].value, 9600);
  EXPECT_DOUBLE_EQ(a.loss, 0.01 * 3 + 0.2);
  EXPECT_EQ(a.plan.at("a").input, block("int8"));
  EXPECT_EQ(a.plan.at("b").input, block("int8"));
}

Times times_of(const Sensitivity& s) {
  Times t;
  for (const LayerSensitivity& l : s.layers)
    for (const char* f : {"int8", "int4"})
      t.layers.push_back({l.name, block(f), block(f), {}, {}, (f[3] == '8' ? 2e-6 : 1e-6)});
  return t;
}

TEST(Allocate, TimeWithConversionsBetweenNeighbours) {
  Sensitivity s;
  s.layers = {layer("a", 100, 0.01, 0.2, 0.01, 0.2), layer("b", 100, 0.01, 0.5, 0.01, 0.5),
              layer("c", 100, 0.01, 0.2, 0.01, 0.2)};
  s.edges = {{"a", "b"}, {"b", "c"}};
  AllocationOptions options;
  options.times = times_of(s);
  // Without conversions 4 us buy b at int8.
  Allocation a = allocate(s, {.seconds = 4e-6}, options);
  EXPECT_EQ(weight_of(a.plan, "a") + weight_of(a.plan, "b") + weight_of(a.plan, "c"), "int4int8int4");
  // 64 inputs at 10 ns are 0.64 us a border: b alone would need two of them, which 4 us do not pay.
  options.times.conversions = {{block("int4"), block("int8"), 10e-9}, {block("int8"), block("int4"), 10e-9}};
  a = allocate(s, {.seconds = 4e-6}, options);
  EXPECT_TRUE(a.exact) << a.method;
  EXPECT_EQ(weight_of(a.plan, "b"), "int4");
  a = allocate(s, {.seconds = 4.7e-6}, options);  // an end costs one border only
  EXPECT_EQ(weight_of(a.plan, "a") + weight_of(a.plan, "b") + weight_of(a.plan, "c"), "int8int4int4");
  a = allocate(s, {.seconds = 5.3e-6}, options);
  EXPECT_EQ(weight_of(a.plan, "a") + weight_of(a.plan, "b") + weight_of(a.plan, "c"), "int4int8int4");
  EXPECT_LE(a.amounts[0].value, 5.3e-6);
  EXPECT_CONTAINS(error_of([&] { allocate(s, {.seconds = 1}); }), "measured times");
}

TEST(Allocate, SeveralBudgetsReportTheGap) {
  Sensitivity s;
  s.layers = {layer("a", 100, 0.01, 0.2, 0.01, 0.3), layer("b", 100, 0.01, 0.2, 0.01, 0.9)};
  const Allocation a = allocate(s, {.bits = 6, .bops = 100 * 96});
  ASSERT_EQ(a.amounts.size(), 2u);
  for (const Amount& amount : a.amounts) EXPECT_LE(amount.value, amount.limit) << amount.kind;
  EXPECT_LE(a.bound, a.loss);
  EXPECT_CONTAINS(a.method, "Lagrange");
}

TEST(Allocate, ABudgetOfLossAloneSpendsTheLeast) {
  AllocationOptions options;
  options.minimise = "bits";
  Allocation a = allocate(abc(), {.loss = 0.23}, options);  // 0.222 with b raised, 0.72 with none
  EXPECT_DOUBLE_EQ(a.amounts[0].value, 5);
  EXPECT_DOUBLE_EQ(a.loss, 0.222);
  a = allocate(abc(), {.loss = 0.72}, options);
  EXPECT_DOUBLE_EQ(a.amounts[0].value, 4);
  EXPECT_CONTAINS(error_of([&] { allocate(abc(), {.loss = 0.003}, options); }), "smallest possible is 0.004 nats");
  EXPECT_CONTAINS(error_of([&] { allocate(abc(), {.bits = 5, .loss = 0.2}, options); }), "smallest loss is 0.222");
}

TEST(Allocate, CandidatesForTheMeasuredFinal) {
  Allocation a = allocate(abc(), {.bits = 5});
  ASSERT_EQ(a.candidates.size(), 3u);
  EXPECT_EQ(a.candidates[0].name, "exact");
  EXPECT_EQ(a.candidates[1].name, "greedy");
  EXPECT_EQ(a.candidates[2].name, "uniform int4");
  EXPECT_DOUBLE_EQ(a.candidates[2].loss, 0.72);
  const FinalChoice choice = choose_final(a.candidates, {0.5, NAN, 0.3});
  EXPECT_EQ(choice.index, 2u);
  EXPECT_CONTAINS(choice.reason, "uniform int4: measured 0.3, the least of 3");
  EXPECT_EQ(choose_final(a.candidates, {0.2, 0.2, 0.3}).index, 0u) << "the first of equals";
  EXPECT_THROW(choose_final(a.candidates, {0.1}), Error);
  EXPECT_THROW(choose_final(a.candidates, {NAN, INFINITY, NAN}), Error);
}

TEST(Allocate, FrontAndJson) {
  AllocationOptions options;
  options.front_points = 16;
  const Allocation a = allocate(abc(), {.bits = 5}, options);
  EXPECT_EQ(a.front_kind, "bits");
  ASSERT_EQ(a.front.size(), 5u);  // 4, 5, 6, 7, 8 bits: c costs what a and b cost together
  EXPECT_DOUBLE_EQ(a.front[0].cost, 4);
  EXPECT_DOUBLE_EQ(a.front[1].loss, a.loss);
  EXPECT_EQ(to_string(a.front[1].changes), "b: weight int4 -> int8 (front, bits 5: 0.002 nats predicted)\n");
  EXPECT_DOUBLE_EQ(a.front.back().cost, 8);
  const std::string json = to_json(a);
  EXPECT_EQ(json, to_json(allocate(abc(), {.bits = 5}, options))) << "the same twice";
  EXPECT_CONTAINS(json, "\"schema\": \"hpqf.allocation\"");
  EXPECT_CONTAINS(json, "modelled");
}

TEST(Allocate, PlansSurviveTheirJson) {
  const Allocation a = allocate(abc(), {.bits = 5});
  EXPECT_EQ(PrecisionPlan::from_json(a.plan.to_json()), a.plan);
}

TEST(Allocate, BudgetsAsText) {
  EXPECT_EQ(parse_budget("bits=4.0"), (Budget{.bits = 4}));
  EXPECT_EQ(parse_budget("bytes=60k,loss=0.02"), (Budget{.bytes = 60000, .loss = 0.02}));
  EXPECT_EQ(parse_budget("time=0.5,bops=2.5G"), (Budget{.seconds = 0.5, .bops = 2.5e9}));
  EXPECT_EQ(to_string(parse_budget("bops=2.5M,bits=4")), "bits=4,bops=2500000");
  for (const char* bad : {"", "bits", "bits=", "bits=4x", "bits=4,bits=5", "size=3", "bits=-1", "bits=nan", "bits=4,"})
    EXPECT_THROW(parse_budget(bad), Error) << bad;
  EXPECT_THROW(allocate(abc(), {}), Error);
}

TEST(Allocate, TimesAsJson) {
  const Times t = times_from_json(
      R"({"schema":"hpqf.times","version":1,"layers":[{"layer":"a","weight":"int8","input":"int8","seconds":0.25}],
          "conversions":[{"from":"int8","to":"fp32","seconds_per_element":1e-9}]})");
  ASSERT_EQ(t.layers.size(), 1u);
  EXPECT_EQ(t.layers[0].dgrad, block("fp32"));
  EXPECT_EQ(t.layers[0].seconds, 0.25);
  ASSERT_EQ(t.conversions.size(), 1u);
  EXPECT_THROW(times_from_json(R"({"schema":"hpqf.times","version":1,"layers":[{"layer":"a"}]})"), Error);
}

TEST(Admission, BiasAndLossDecide) {
  Sensitivity s = abc();
  s.layers[0].scores[0].bias = 0.02;
  s.layers[0].scores[0].loss_change = 0.01;
  s.layers[0].scores[1].bias = 0.19;
  s.layers[0].scores[1].loss_change = 0.02;
  s.layers[1].scores[0].bias = 0.05;
  s.layers[1].scores[0].loss_change = -1;  // a gain is luck, no credit
  const auto all = admit(s);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].verdict, Verdict::admitted) << "0.03 is still in";
  EXPECT_EQ(all[1].verdict, Verdict::forbidden);
  EXPECT_EQ(all[1].reason, "bias 0.19 + loss change 0.02 = 0.21, above 0.2");
  EXPECT_EQ(all[2].verdict, Verdict::doubtful);
  EXPECT_FALSE(all[2].allowed);
  EXPECT_TRUE(admit(s, {.doubtful = true})[2].allowed);
  EXPECT_EQ(all[3].verdict, Verdict::unmeasured);
  EXPECT_FALSE(all[3].allowed);
  EXPECT_THROW(admit(s, {.admit = 0.3, .forbid = 0.2}), Error);
  EXPECT_CONTAINS(to_json(all), "\"verdict\": \"doubtful\"");
}

TEST(Admission, TheFastestAdmittedFormatsAreTaken) {
  Sensitivity s;
  for (const char* name : {"a", "b"}) {
    LayerSensitivity l{name, LayerKind::linear, 100, 64, 100, std::nullopt, {}};
    for (Operand operand : kOperands)
      for (const char* format : {"int8", "int4"}) {
        FormatScore f = scored(operand, format, 0.001);
        f.bias = format[3] == '8' ? 0.006 : operand == Operand::wgrad && *name == 'a' ? 0.016 : 0.3;
        f.loss_change = 0.0;
        l.scores.push_back(f);
      }
    s.layers.push_back(l);
  }
  AllocationOptions options;
  options.training = AdmissionThresholds{};
  options.minimise = "seconds";
  for (const char* name : {"a", "b"})
    for (auto [w, g, seconds] : {std::tuple{"int8", "int8", 2e-6}, {"int8", "int4", 1.5e-6}, {"int4", "int4", 1e-6}})
      options.times.layers.push_back({name, block(w), block(w), block("int8"), block(g), seconds});
  const Allocation a = allocate(s, {.loss = 1e3}, options);
  EXPECT_EQ(a.plan.at("a").weight, block("int8"));
  EXPECT_EQ(a.plan.at("a").wgrad, block("int4")) << "stochastic rounding of a's gradient was unbiased enough";
  EXPECT_EQ(a.plan.at("b").wgrad, block("int8"));
  EXPECT_DOUBLE_EQ(a.amounts[0].value, 3.5e-6);
}

TEST(Threshold, SensitiveLayersStayHigh) {
  const Sensitivity s = abc();
  const auto map = sensitivity_map(s);
  EXPECT_DOUBLE_EQ(map.at("b"), 1);
  EXPECT_DOUBLE_EQ(map.at("a"), 0.2);
  const PrecisionPlan plan = allocate_precision(s, 0.21);
  EXPECT_EQ(weight_of(plan, "a"), "int4");
  EXPECT_EQ(weight_of(plan, "b"), "fp16");
  EXPECT_EQ(weight_of(plan, "c"), "fp16");
  EXPECT_EQ(plan.at("a").reason, "relative score 0.2 <= 0.21");
  EXPECT_EQ(plan.at("a").dgrad, block("fp32"));
  EXPECT_EQ(weight_of(allocate_precision(s, 0.3, {.relative = false}), "b"), "fp16");
  EXPECT_EQ(weight_of(allocate_precision(s, 0.6, {.relative = false}), "b"), "int4");
  EXPECT_THROW(allocate_precision(s, 0.1, {.measure = "eigenvalue"}), Error) << "no layer has a Hessian";
  EXPECT_THROW(allocate_precision(s, 0.1, {.measure = "size"}), Error);
  EXPECT_THROW(allocate_precision(s, -1), Error);
  EXPECT_THROW(allocate_precision(s, 0.1, {.low = "int7"}), Error) << "not measured";
}

}  // namespace
}  // namespace hpqf::plan
