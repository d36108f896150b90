#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hpqf/base/error.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {
namespace {

std::string error_of(const std::string& text, std::string_view where = "p.json") {
  try {
    PrecisionPlan::from_json(text, where);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string with_rules(const std::string& rules) {
  return R"({"schema":"hpqf.plan","version":1,"rules":[)" + rules + "]}";
}

PrecisionPlan read(const std::string& rules) { return PrecisionPlan::from_json(with_rules(rules)); }

PrecisionPlan sample() {
  LayerPrecision mixed = uniform_precision("int8[1x128]", "quotes \" and \\ and \n and ü");
  mixed.dgrad = formats::parse_block_format("fp8_e5m2[row,pow2]");
  mixed.wgrad = {};
  return PrecisionPlan({{"conv?.*", mixed}, {"fc", {}}, {"*", uniform_precision("fp8")}})
      .with_rule({"=", uniform_precision("tf32")});
}

TEST(PlanJson, RoundTripIsExact) {
  const PrecisionPlan plan = sample();
  EXPECT_EQ(PrecisionPlan::from_json(plan.to_json()), plan);
  EXPECT_EQ(PrecisionPlan::from_json(plan.to_json()).epoch(), 1);
  const PrecisionPlan empty;
  EXPECT_EQ(PrecisionPlan::from_json(empty.to_json()), empty);
}

TEST(PlanJson, ResolvedTable) {
  const ModelFacts model{"Net",
                         {{"", "Net", LayerKind::other, 0},
                          {"fc", "Linear", LayerKind::linear, 650},
                          {"bn", "Norm\"", LayerKind::norm, 2}}};
  const std::string text = PrecisionPlan::with_sensitive("bf16", {"fc"}).to_json(&model);
  const auto json = nlohmann::json::parse(text);  // an independent reader
  EXPECT_EQ(json["schema"], "hpqf.plan");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["model"], "Net");
  EXPECT_EQ(json["layers"][0]["weight"], "bf16");
  EXPECT_EQ(json["layers"][1]["weight"], "fp32");
  EXPECT_EQ(json["layers"][1]["reason"], "sensitive: asked by the user");
  EXPECT_EQ(json["layers"][2]["reason"], "rule: norm in fp32");
  EXPECT_EQ(json["layers"][2]["kind"], "norm");

  const ModelFacts back = model_facts_from_json(text);
  ASSERT_EQ(back.layers.size(), 3u);
  EXPECT_EQ(back.model, "Net");
  EXPECT_EQ(back.layers[1].name, "fc");
  EXPECT_EQ(back.layers[1].kind, LayerKind::linear);
  EXPECT_EQ(back.layers[1].parameters, 650);
  EXPECT_EQ(back.layers[2].type, "Norm\"");
  EXPECT_TRUE(model_facts_from_json(PrecisionPlan().to_json()).layers.empty());
  EXPECT_EQ(PrecisionPlan::from_json(text), PrecisionPlan::with_sensitive("bf16", {"fc"}));
}

TEST(PlanJson, Shorthands) {
  EXPECT_EQ(read(R"({"layers":"*","precision":"fp16"})"), PrecisionPlan::uniform("fp16"));
  EXPECT_EQ(read(R"({"layers":"*","precision":"fp8"})"), PrecisionPlan::uniform("fp8"));
  const LayerPrecision p = read(R"({"layers":"*","precision":"bf16","output_grad":"fp8","wgrad":"fp32"})").at("x");
  EXPECT_EQ(formats::to_string(p.weight), "bf16");
  EXPECT_EQ(formats::to_string(p.dgrad), "fp8_e5m2") << "fp8 is e5m2 for gradients";
  EXPECT_EQ(formats::to_string(p.wgrad), "fp32") << "the more specific key wins";
  const LayerPrecision q = read(R"({"layers":"*","weight":"fp8","dgrad":"fp8"})").at("x");
  EXPECT_EQ(formats::to_string(q.weight), "fp8_e4m3");
  EXPECT_EQ(formats::to_string(q.dgrad), "fp8_e5m2");
  EXPECT_EQ(formats::to_string(q.input), "fp32") << "roles left out are fp32";
  EXPECT_TRUE(read(R"({"layers":"*","accumulate":"fp32","master":"fp32"})").at("x").all_fp32());
}

TEST(PlanJson, ErrorsNameThePlace) {
  const std::string last = R"(,{"layers":"*"})";
  std::string text = error_of(with_rules(R"({"layers":"a"},{"layers":"conv1","weight":"fp17"})" + last));
  EXPECT_CONTAINS(text, "p.json: rule 1 (layers \"conv1\"), key \"weight\"");
  EXPECT_CONTAINS(text, "fp16");
  text = error_of(with_rules(R"({"layers":"conv1","wieght":"fp16"})" + last));
  EXPECT_CONTAINS(text, "rule 0 (layers \"conv1\"): unknown key \"wieght\"");
  EXPECT_CONTAINS(text, "weight, input");
  text = error_of(with_rules(R"({"layers":"conv1","weight":16})" + last));
  EXPECT_CONTAINS(text, "key \"weight\": number (16)");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":["conv1"]})" + last)), "rule 0, key \"layers\": array");
  EXPECT_CONTAINS(error_of(with_rules(R"({"precision":"fp16"})" + last)), "rule 0: no key \"layers\"");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":"a","accumulate":"bf16"})" + last)), "only fp32 is available");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":"a","saved":"bf16"})" + last)), "role \"saved\": bf16");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":"a","precision":"auto"})" + last)), "\"auto\"");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":"a","weight":"int8[0x64]"})" + last)), "rule 0");
  EXPECT_CONTAINS(error_of(with_rules("17" + last)), "rule 0: number (17)");
  text = error_of(with_rules(R"({"layers":"conv1"})"));
  EXPECT_CONTAINS(text, "p.json: a plan whose last rule is for \"conv1\"");
  EXPECT_CONTAINS(error_of(with_rules("")), "p.json: a plan without rules");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":""})" + last)), "empty layer pattern");
  EXPECT_CONTAINS(error_of(with_rules(R"({"layers":"a","layers":"b"})" + last)), "key \"layers\" twice");
}

TEST(PlanJson, ErrorsOfTheWholeFile) {
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.audit","version":1,"rules":[]})"), "schema \"hpqf.audit\"");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":2,"rules":[]})"), "version 2");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":2,"new":1})"), "version 2") << "not the unknown key";
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":0,"rules":[]})"), "key \"version\"");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":"1","rules":[]})"), "key \"version\": string");
  EXPECT_CONTAINS(error_of(R"({"version":1,"rules":[]})"), "no key \"schema\"");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":1})"), "no key \"rules\"");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":1,"rules":[],"rule":[]})"), "unknown key \"rule\"");
  EXPECT_CONTAINS(error_of(R"({"schema":"hpqf.plan","version":1,"rules":[{"layers":"*"}],"epoch":-1})"),
                  "key \"epoch\"");
  EXPECT_CONTAINS(error_of("[]"), "p.json: array");
  EXPECT_CONTAINS(error_of(""), "ends too early");
  EXPECT_CONTAINS(error_of("{\n \"schema\": oops"), "line 2, column");
  EXPECT_CONTAINS(
      error_of(
          R"({"schema":"hpqf.plan","version":1,"rules":[{"layers":"*"}],"layers":[{"name":"a","type":"T","kind":"cnov","parameters":1}]})"),
      "layer 0 (name \"a\"), key \"kind\": \"cnov\"");
}

TEST(PlanJson, EveryTruncationIsRefused) {
  const ModelFacts model{"Net", {{"fc", "Linear", LayerKind::linear, 650}}};
  const std::string text = sample().to_json(&model);
  const size_t end = text.find_last_of('}');
  for (size_t length = 0; length <= end; ++length)
    ASSERT_THROW(PrecisionPlan::from_json(text.substr(0, length)), Error) << length;
  EXPECT_NO_THROW(PrecisionPlan::from_json(text.substr(0, end + 1)));
}

TEST(PlanJson, DamagedBytesAreRefusedOrRead) {
  // Any single byte changed: never another exception than Error.
  const std::string text = sample().to_json();
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '"', '}', '9', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      try {
        PrecisionPlan::from_json(damaged);
      } catch (const Error&) {
      }
    }
}

TEST(PlanJson, LoadNamesTheFile) {
  const auto path = (std::filesystem::temp_directory_path() / "hpqf_plan_json_test.json").string();
  std::ofstream(path) << sample().to_json();
  EXPECT_EQ(PrecisionPlan::load(path), sample());
  std::ofstream(path) << "{";
  try {
    PrecisionPlan::load(path);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_CONTAINS(e.asked(), path);
  }
  std::filesystem::remove(path);
  EXPECT_THROW(PrecisionPlan::load(path), Error);
}

}  // namespace
}  // namespace hpqf::plan
