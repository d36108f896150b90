#include "hpqf/plan/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

BlockFormat block(std::string_view text) { return formats::parse_block_format(text); }

Sensitivity two_layers() {
  Sensitivity s{.model = "Net", .method = "fisher", .labels = "sampled", .samples = 256, .seed = 0xffffffffffffffffu};
  FormatScore score{
      .operand = Operand::weight, .format = block("int4"), .score = 0.1 + 0.2, .standard_error = 1e-17, .terms = 256};
  score.omega = -0.25;
  score.loss_change = -1e-300;
  FormatScore dead{
      .operand = Operand::dgrad, .format = block("fp16"), .score = std::numeric_limits<double>::infinity()};
  s.layers.push_back({"a", LayerKind::conv, 432, 3072, 442368, Hessian{5.5, -2.25, 0.125, 40}, {score, dead}});
  s.layers.push_back({"b \"q\"", LayerKind::linear, 640, 64, 640, std::nullopt, {}});
  s.ties = {{"a", "b \"q\""}};
  s.edges = {{"a", "b \"q\""}};
  return s;
}

std::string refused(const Sensitivity& s) {
  try {
    check(s);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Sensitivity, JsonRoundTripIsExact) {
  const Sensitivity s = two_layers();
  EXPECT_EQ(sensitivity_from_json(to_json(s)), s);
  EXPECT_NE(to_json(s).find("\"score\":null"), std::string::npos) << "JSON has no infinity";
}

TEST(Sensitivity, FindsEntries) {
  const Sensitivity s = two_layers();
  ASSERT_NE(find_layer(s, "a"), nullptr);
  EXPECT_EQ(find_layer(s, "c"), nullptr);
  EXPECT_EQ(find_score(s.layers[0], Operand::weight, block("int4"))->terms, 256);
  EXPECT_EQ(find_score(s.layers[0], Operand::input, block("int4")), nullptr);
  EXPECT_EQ(find_score(s.layers[0], Operand::weight, block("int8")), nullptr);
}

TEST(Sensitivity, RefusesWhatCannotBe) {
  Sensitivity s = two_layers();
  EXPECT_EQ(refused(s), "");
  s.layers[0].scores[0].score = -1e-9;
  EXPECT_NE(refused(s).find("weight in int4: score -1e-09"), std::string::npos) << refused(s);
  s.layers[0].scores[0].score = std::nan("");
  EXPECT_NE(refused(s), "");
  s = two_layers();
  s.layers[0].scores.push_back(s.layers[0].scores[0]);
  EXPECT_NE(refused(s).find("twice"), std::string::npos);
  s = two_layers();
  s.layers.push_back(s.layers[0]);
  EXPECT_NE(refused(s).find("\"a\" twice"), std::string::npos);
  s = two_layers();
  s.ties.push_back({"a"});
  EXPECT_NE(refused(s).find("in two ties"), std::string::npos);
  s = two_layers();
  s.edges.push_back({"a", "c"});
  EXPECT_NE(refused(s).find("\"c\""), std::string::npos);
}

TEST(Sensitivity, RefusesOtherFiles) {
  const std::string good = to_json(two_layers());
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THROW(sensitivity_from_json(good.substr(0, good.size() / 2)), Error);
  EXPECT_THROW(sensitivity_from_json(changed("hpqf.sensitivity", "hpqf.plan")), Error);
  EXPECT_THROW(sensitivity_from_json(changed("\"version\":1", "\"version\":2")), Error);
  EXPECT_THROW(sensitivity_from_json(changed("\"role\":\"weight\"", "\"role\":\"weights\"")), Error);
  EXPECT_THROW(sensitivity_from_json(changed("\"format\":\"int4\"", "\"format\":\"int5\"")), Error);
  EXPECT_THROW(sensitivity_from_json(changed("\"seed\":18446744073709551615", "\"seed\":-1")), Error);
}

}  // namespace
}  // namespace hpqf::plan
