#include "hpqf/observe/front_picture.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {

TEST(FrontPicture, ShowsEveryPointAndCandidate) {
  plan::Allocation a;
  a.front_kind = "bits";
  for (int k = 0; k < 5; ++k) a.front.push_back({4.0 + k, k == 4 ? 0 : 1.0 / (1 << k), {}, {}});
  a.candidates.push_back({"exact <&>", {}, 0.5, {{"bits", 5, 5}}});
  const std::string svg = front_picture(a);
  size_t circles = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, 5u);
  EXPECT_NE(svg.find("exact &lt;&amp;>"), std::string::npos);
  EXPECT_NE(svg.find("modelled"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(front_page(a).find(svg), std::string::npos);
  EXPECT_THROW(front_picture({}), Error);
  // One point, no loss at all.
  plan::Allocation one;
  one.front_kind = "bits";
  one.front.push_back({4, 0, {}, {}});
  EXPECT_EQ(front_picture(one).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace hpqf::observe
