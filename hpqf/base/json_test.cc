#include "hpqf/base/json.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::base {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "x.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ParseJson, NamesFileAndPlaceOfWhatItRefuses) {
  EXPECT_NE(refusal("{\"a\": 1").find("ends too early at line 1"), std::string::npos) << refusal("{\"a\": 1");
  EXPECT_NE(refusal("{\n\"a\": x}").find("not JSON at line 2"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1, \"a\": 2}").find("key \"a\" twice"), std::string::npos);
  EXPECT_NE(refusal("{\"a\": 1e999}").find("no double holds"), std::string::npos) << refusal("{\"a\": 1e999}");
  EXPECT_EQ(refusal("{\"a\": 1e300}"), "accepted");
}

TEST(ParseJson, DepthIsBounded) {
  auto nested = [](int depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(90)), "accepted");
  EXPECT_NE(refusal(nested(1000)).find("nest deeper than 100"), std::string::npos);
  EXPECT_NE(refusal(nested(1000000)).find("nest deeper than 100"), std::string::npos);
  EXPECT_NE(refusal(std::string(1000000, '[')).find("nest deeper than 100"), std::string::npos);
}

}  // namespace
}  // namespace hpqf::base
