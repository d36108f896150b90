#include "hpqf/base/text.h"

#include <gtest/gtest.h>

namespace hpqf::base {
namespace {

TEST(EditDistance, KnownPairs) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("saturday", "sunday"), 3u);
  EXPECT_EQ(edit_distance("ab", "ba"), 2u);  // a transposition is two edits
}

TEST(EditDistance, IsAMetricOnSmallWords) {
  const char* words[] = {"", "a", "ab", "ba", "abc", "bca", "layer.0", "layer.1", "layers.1"};
  for (auto a : words)
    for (auto b : words) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
      EXPECT_EQ(edit_distance(a, b) == 0, std::string_view(a) == b);
      for (auto c : words) EXPECT_LE(edit_distance(a, c), edit_distance(a, b) + edit_distance(b, c));
    }
}

TEST(Nearest, OrdersByDistanceThenPosition) {
  const std::vector<std::string> names{"fp32", "bf16", "fp16", "int8"};
  EXPECT_EQ(nearest(names, "FP61", 2), (std::vector<std::string>{"fp32", "fp16"}));  // both two edits away
  EXPECT_EQ(nearest(names, "int9", 1), (std::vector<std::string>{"int8"}));
  EXPECT_EQ(nearest(names, "x", 9).size(), 4u);
  EXPECT_TRUE(nearest({}, "x").empty());
  EXPECT_TRUE(nearest(names, "x", 0).empty());
}

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(glob("", ""));
  EXPECT_FALSE(glob("", "a"));
  EXPECT_TRUE(glob("*", ""));
  EXPECT_TRUE(glob("*h100*", "nvidia h100 pcie"));
  EXPECT_FALSE(glob("h100", "nvidia h100"));
  EXPECT_TRUE(glob("a?c*c", "abcbc"));
  EXPECT_FALSE(glob("a?c", "ac"));
  EXPECT_FALSE(glob(std::string(2000, '*') + "b", std::string(20000, 'a'))) << "no exponential time";
}

}  // namespace
}  // namespace hpqf::base
