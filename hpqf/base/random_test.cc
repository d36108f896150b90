#include "hpqf/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace hpqf::base {
namespace {

// The known-answer vectors that the authors' Random123 library publishes for philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedStreamAndIndexAllMatter) {
  std::set<uint32_t> seen;
  for (uint64_t high : {uint64_t{0}, uint64_t{1} << 32}) {
    seen.insert(random_bits(7 + high, 3, 5));
    seen.insert(random_bits(6, 4 + high, 5));
    seen.insert(random_bits(6, 3, 6 + high));
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST(Philox, WordsOfABlockAreConsecutiveIndices) {
  const PhiloxBlock block = random_block(11, 22, 33);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(random_bits(11, 22, 4 * 33 + i), block[i]);
}

TEST(Philox, UniformHasTheRightMomentsAndRange) {
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const float u = random_uniform(1, 2, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += double{u} * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / std::sqrt(n));  // five standard errors
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * 0.2981 / std::sqrt(n));
}

}  // namespace
}  // namespace hpqf::base
