// The codec against a second derivation: the list of all values of a format, built from its definition in double, and a
// search for the neighbours of x in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hpqf/formats/format.h"

namespace hpqf::formats {
namespace {

float from_bits(uint32_t b) { return std::bit_cast<float>(b); }
uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

// Non-negative values in order, then the first one beyond the range: what rounding would give without overflow.
struct Values {
  std::vector<double> list;
  size_t finite;  // list[finite] is beyond
  explicit Values(const FormatInfo& f) {
    if (f.is_integer) {
      for (int q = 0; q <= (1 << (f.bits - 1)); ++q) list.push_back(q);
    } else {
      const int bias = (1 << (f.exponent_bits - 1)) - 1, steps = 1 << f.mantissa_bits;
      // IEEE keeps the last exponent for infinity and NaN; e4m3 only its last code.
      const int last = f.format == Format::fp8_e4m3 ? 16 : (1 << f.exponent_bits) - 1;
      for (int e = 0; e < last; ++e)
        for (int m = 0; m < steps; ++m)
          list.push_back(e == 0 ? std::ldexp(double(m) / steps, 1 - bias)
                                : std::ldexp(1 + double(m) / steps, e - bias));
      if (f.format != Format::fp8_e4m3) list.push_back(std::ldexp(1.0, last - bias));
    }
    finite = list.size() - 1;
  }
};

struct Expected {
  float value;
  bool overflow;
};

Expected oracle(const FormatInfo& f, const Values& v, float x, Rounding rounding, uint32_t random) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  if (std::isnan(x)) return {f.is_integer ? nan : std::copysign(nan, x), false};
  if (std::isinf(x)) return {f.is_integer ? nan : f.has_infinity ? x : std::copysign(nan, x), false};
  const double a = std::fabs(double(x));
  size_t pick = v.finite + 1;
  if (a < v.list.back()) {
    const size_t above = static_cast<size_t>(std::upper_bound(v.list.begin(), v.list.end(), a) - v.list.begin());
    const double low = v.list[above - 1], high = v.list[above];
    bool up;
    if (rounding == Rounding::nearest_even) {
      up = a - low > high - a || (a - low == high - a && (above & 1) == 0);  // even code = even position
    } else {
      up = std::floor((a - low) / (high - low) * 0x1p32) + random >= 0x1p32;
    }
    pick = above - 1 + up;
  }
  const bool overflow = pick >= v.finite;
  const double magnitude = !overflow ? v.list[pick] : f.saturates ? v.list[v.finite - 1] : double(inf);
  const float out = std::copysign(static_cast<float>(magnitude), x);
  return {f.is_integer ? out + 0.0f : out, overflow};
}

class Codec : public ::testing::TestWithParam<Format> {
 protected:
  const FormatInfo& f = info(GetParam());
  Values values{f};

  void expect(float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0) {
    const Expected want = oracle(f, values, x, rounding, random);
    const float got = round_to(f.format, x, rounding, random);
    if (bits(got) != bits(want.value) || overflows(f.format, x, rounding, random) != want.overflow)
      ADD_FAILURE() << f.name << " of " << x << " (" << std::hex << bits(x) << ", random " << random
                    << "): " << bits(got) << " instead of " << bits(want.value);
  }
  void expect_around(float x) {
    for (int step : {-1, 0, 1})
      for (uint32_t sign : {0u, 0x80000000u}) expect(from_bits((bits(x) + static_cast<uint32_t>(step)) ^ sign));
  }
};

TEST_P(Codec, TableRowSaysWhatTheValuesAre) {
  EXPECT_EQ(double(f.largest), values.list[values.finite - 1]);
  EXPECT_EQ(double(f.smallest), values.list[1]);
  EXPECT_EQ(double(f.smallest_normal), values.list[f.is_integer ? 1 : size_t{1} << f.mantissa_bits]);
}

TEST_P(Codec, CodesCountUpThroughTheValues) {
  for (size_t i = 0; i < values.finite; ++i) {
    const auto code = static_cast<uint32_t>(f.format == Format::tf32 ? i << 13 : i);
    const auto value = static_cast<float>(values.list[i]);
    ASSERT_EQ(bits(decode(f.format, code)), bits(value)) << i;
    ASSERT_EQ(encode(f.format, value), code);
    const uint32_t negative = f.is_integer ? (0 - code) & ((1u << f.bits) - 1) : code | 1u << (f.bits - 1);
    if (i == 0 && f.is_integer) continue;
    ASSERT_EQ(bits(decode(f.format, negative)), bits(-value));
    ASSERT_EQ(encode(f.format, -value), negative);
  }
}

TEST_P(Codec, ValuesMidpointsAndTheirNeighbours) {
  for (size_t i = 0; i + 1 < values.list.size(); ++i) {
    expect_around(static_cast<float>(values.list[i]));
    expect_around(static_cast<float>((values.list[i] + values.list[i + 1]) / 2));
  }
  expect(0.0f);
  expect(-0.0f);
  expect_around(std::numeric_limits<float>::max());
  expect_around(std::numeric_limits<float>::min());
  expect(from_bits(1));
  expect(from_bits(0x80000001));
}

TEST_P(Codec, EveryUpperHalfOfAPatternWithTellingLowerHalves) {
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) expect(from_bits(high << 16 | low));
}

TEST_P(Codec, RandomPatterns) {
  std::mt19937 rng(17);
  for (int i = 0; i < 200000; ++i) expect(from_bits(static_cast<uint32_t>(rng())));
}

TEST_P(Codec, StochasticRoundsAwayExactlyWhenTheDefinitionSays) {
  std::mt19937 rng(18);
  std::uniform_real_distribution<float> exponent(std::log2(f.smallest) - 20, std::log2(f.largest) + 1);
  for (int i = 0; i < 100000; ++i) {
    const float x = std::exp2(std::max(exponent(rng), -148.0f)) * (rng() & 1 ? 1.0f : -1.0f);
    const auto random = static_cast<uint32_t>(rng());
    for (uint32_t r : {random, 0u, 0xffffffffu, 0x80000000u}) expect(x, Rounding::stochastic, r);
  }
  // At the threshold: one less must round toward zero.
  const float quarter = static_cast<float>(values.list[1] + (values.list[2] - values.list[1]) / 4);
  if (f.smallest > 0x1p-126f) {
    expect(quarter, Rounding::stochastic, 0xc0000000u);
    EXPECT_EQ(round_to(f.format, quarter, Rounding::stochastic, 0xc0000000u), static_cast<float>(values.list[2]));
    EXPECT_EQ(round_to(f.format, quarter, Rounding::stochastic, 0xbfffffffu), static_cast<float>(values.list[1]));
  }
}

TEST_P(Codec, NanAndInfinityCodes) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (float x : {nan, -nan, inf, -inf, from_bits(0x7f800001), from_bits(0xffffffff)}) expect(x);
  if (f.is_integer) {
    EXPECT_EQ(encode(f.format, nan), 0u);
    EXPECT_EQ(encode(f.format, -inf), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats, Codec,
                         ::testing::Values(Format::tf32, Format::bf16, Format::fp16, Format::fp8_e4m3, Format::fp8_e5m2,
                                           Format::int16, Format::int12, Format::int8, Format::int7, Format::int4),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(Fp32, KeepsEveryPattern) {
  std::mt19937 rng(19);
  for (int i = 0; i < 1000; ++i) {
    const auto pattern = static_cast<uint32_t>(rng());
    EXPECT_EQ(encode(Format::fp32, from_bits(pattern), Rounding::stochastic, ~0u), pattern);
    EXPECT_EQ(bits(decode(Format::fp32, pattern)), pattern);
    EXPECT_FALSE(overflows(Format::fp32, from_bits(pattern)));
  }
}

// A few codes written down from the standards, in case both derivations above share a mistake.
TEST(KnownCodes, OfTheStandards) {
  EXPECT_EQ(encode(Format::bf16, 1.0f), 0x3f80u);
  EXPECT_EQ(encode(Format::fp16, 1.0f), 0x3c00u);
  EXPECT_EQ(encode(Format::fp16, 65504.0f), 0x7bffu);
  EXPECT_EQ(encode(Format::fp16, 65520.0f), 0x7c00u);
  EXPECT_EQ(encode(Format::fp8_e4m3, 1.0f), 0x38u);
  EXPECT_EQ(encode(Format::fp8_e4m3, 448.0f), 0x7eu);
  EXPECT_EQ(encode(Format::fp8_e4m3, 1e9f), 0x7eu);
  EXPECT_EQ(encode(Format::fp8_e4m3, std::numeric_limits<float>::infinity()), 0x7fu);
  EXPECT_EQ(encode(Format::fp8_e5m2, 1.0f), 0x3cu);
  EXPECT_EQ(encode(Format::fp8_e5m2, -1e9f), 0xfbu);
  EXPECT_EQ(encode(Format::fp8_e5m2, std::numeric_limits<float>::infinity()), 0x7cu);
  EXPECT_EQ(encode(Format::fp8_e5m2, std::numeric_limits<float>::quiet_NaN()), 0x7eu);
  EXPECT_EQ(encode(Format::tf32, 1.0f + 0x1p-11f), 0x3f800000u);  // tie to even
  EXPECT_EQ(encode(Format::int8, -200.0f), 0x81u);                // -127: symmetric
}

}  // namespace
}  // namespace hpqf::formats
