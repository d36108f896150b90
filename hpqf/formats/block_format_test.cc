#include "hpqf/formats/block_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hpqf/base/error.h"

namespace hpqf::formats {
namespace {

bool valid(const BlockFormat& f) {
  try {
    check(f);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Every combination, valid or not.
template <typename Visit>
void for_all(Visit visit) {
  for (const FormatInfo& f : all_formats())
    for (BlockShape shape : {BlockShape::none, BlockShape::tensor, BlockShape::row, BlockShape::vector})
      for (int n : {0, 1, 32, 64, 100, 65536, 65537, -1})
        for (ScaleType scale : {ScaleType::none, ScaleType::fp32, ScaleType::pow2})
          visit(BlockFormat{f.format, shape, n, scale});
}

TEST(BlockFormat, TextRoundTripsForEveryValidValue) {
  int count = 0;
  for_all([&](const BlockFormat& f) {
    if (!valid(f)) return;
    ++count;
    EXPECT_EQ(parse_block_format(to_string(f)), f) << to_string(f);
  });
  // fp32, tf32, bf16 unscaled; fp16 and fp8 unscaled or 2 scales x (tensor, row, five Ns); integers the same but
  // unscaled.
  EXPECT_EQ(count, 3 + 3 * (1 + 2 * 7) + 5 * (2 * 7));
}

TEST(BlockFormat, TextIsTheShortest) {
  EXPECT_EQ(to_string({Format::int8, BlockShape::vector, 64, ScaleType::fp32}), "int8");
  EXPECT_EQ(to_string({Format::int8, BlockShape::vector, 64, ScaleType::pow2}), "int8[pow2]");
  EXPECT_EQ(to_string({Format::int8, BlockShape::vector, 128, ScaleType::fp32}), "int8[1x128]");
  EXPECT_EQ(to_string({Format::int8, BlockShape::tensor, 0, ScaleType::pow2}), "int8[tensor,pow2]");
  EXPECT_EQ(to_string({Format::fp8_e4m3, BlockShape::row, 0, ScaleType::fp32}), "fp8_e4m3[row]");
  EXPECT_EQ(to_string({Format::fp8_e5m2, BlockShape::none, 0, ScaleType::none}), "fp8_e5m2[none]");
  EXPECT_EQ(to_string(default_block(Format::bf16)), "bf16");
}

TEST(BlockFormat, ParsesAnyCaseAndLongForms) {
  EXPECT_EQ(parse_block_format("BF16"), default_block(Format::bf16));
  EXPECT_EQ(parse_block_format("fp8"), default_block(Format::fp8_e4m3));
  EXPECT_EQ(parse_block_format("INT8[1X64,FP32]"), default_block(Format::int8));
  EXPECT_EQ(parse_block_format("fp32[none]"), default_block(Format::fp32));
}

TEST(BlockFormat, RefusesWithThreeParts) {
  for (const char* text :
       {"", "int9", "int8[", "int8[]", "int8[1x64", "int8[1x64]x", "int8[1x0]", "int8[1x-4]", "int8[1x65537]",
        "int8[1x]", "int8[1x6 4]", "int8[2x64]", "int8[row,]", "int8[row,int]", "int8[none]", "bf16[row]", "bf16[pow2]",
        "fp16[none,pow2]", "int8[1x99999999999999999999]"}) {
    try {
      parse_block_format(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_FALSE(e.asked().empty() || e.allowed().empty() || e.todo().empty()) << text;
    }
  }
}

TEST(Format, NamesAreFoundInAnyCaseAndErrorsNameTheNearest) {
  for (const FormatInfo& f : all_formats()) {
    EXPECT_EQ(find_format(f.name), f.format);
    EXPECT_EQ(info(f.format).format, f.format);  // the table is in the order of the enum
  }
  EXPECT_EQ(parse_format("Fp8_E5M2"), Format::fp8_e5m2);
  EXPECT_EQ(parse_format("FP8"), Format::fp8_e4m3);
  EXPECT_FALSE(find_format("int").has_value());
  EXPECT_FALSE(find_format("").has_value());
  try {
    parse_format("bf61");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.allowed().find("int12"), std::string::npos);
    EXPECT_NE(e.todo().find("bf16"), std::string::npos);
  }
  EXPECT_EQ(storage_bits(Format::tf32), 32);
  EXPECT_EQ(storage_bits(Format::int12), 16);
  EXPECT_EQ(storage_bits(Format::int7), 8);
  EXPECT_EQ(storage_bits(Format::int4), 4);
}

TEST(BlockScale, MapsTheLargestMagnitudeOntoTheLargestCode) {
  for (const FormatInfo& f : all_formats()) {
    if (f.exponent_bits == 8) continue;
    const BlockFormat exact{f.format, BlockShape::tensor, 0, ScaleType::fp32};
    const BlockFormat power{f.format, BlockShape::tensor, 0, ScaleType::pow2};
    for (float amax = 0x1.234567p-149f; amax < 1e38f; amax *= 1.7f) {
      const float s = block_scale(exact, amax), p = block_scale(power, amax);
      ASSERT_GE(s, std::numeric_limits<float>::min());
      ASSERT_TRUE(std::isfinite(1 / s) && std::isfinite(1 / p));
      ASSERT_EQ(s, std::max(amax / f.largest, std::numeric_limits<float>::min()));
      int exponent;
      ASSERT_EQ(std::frexp(p, &exponent), 0.5f);
      ASSERT_GE(p, s);
      ASSERT_LT(p, 2 * s);
      if (!f.is_integer) continue;
      ASSERT_FALSE(overflows(f.format, amax / s));
      ASSERT_FALSE(overflows(f.format, amax / p));
    }
  }
}

TEST(BlockScale, Edges) {
  const BlockFormat f = default_block(Format::int8);
  const float tiny = std::numeric_limits<float>::min(), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(block_scale(f, 0.0f), tiny);
  EXPECT_EQ(block_scale(f, std::numeric_limits<float>::denorm_min()), tiny);
  EXPECT_EQ(block_scale(f, 127.0f), 1.0f);
  EXPECT_EQ(block_scale({Format::int8, BlockShape::row, 0, ScaleType::pow2}, 127.0f), 1.0f);
  EXPECT_EQ(block_scale({Format::int8, BlockShape::row, 0, ScaleType::pow2}, 127.1f), 2.0f);
  EXPECT_TRUE(std::isfinite(
      block_scale({Format::int4, BlockShape::row, 0, ScaleType::pow2}, std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isnan(block_scale(f, inf)));
  EXPECT_TRUE(std::isnan(block_scale(f, std::numeric_limits<float>::quiet_NaN())));
  EXPECT_EQ(block_scale(default_block(Format::bf16), inf), 1.0f);
  EXPECT_EQ(round_to(Format::int8, 0.0f / block_scale(f, 0.0f)) * block_scale(f, 0.0f), 0.0f);
}

}  // namespace
}  // namespace hpqf::formats
