// Every number format HPQF knows: one row of a table each, and the scalar codec that defines it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::formats {

enum class Format : uint8_t { fp32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2, int16, int12, int8, int7, int4 };
inline constexpr int kFormatCount = 11;

struct FormatInfo {
  Format format;
  const char* name;       // the one spelling of code, CLI, JSON and docs
  int bits;               // width of a code; see storage_bits() for the lane it lives in
  int exponent_bits;      // 0 for integers
  int mantissa_bits;      // explicit fraction bits; integers: bits - 1
  float largest;          // largest finite magnitude (integers: largest code magnitude; codes are symmetric)
  float smallest_normal;  // integers: 1
  float smallest;         // smallest positive value (subnormal); integers: 1
  bool is_integer;
  bool saturates;  // overflow clips to +-largest (integers, fp8); false: IEEE overflow to infinity
  bool has_infinity;
  bool has_nan;  // integers: a NaN makes the block scale NaN instead
};

HPQF_API const FormatInfo& info(Format format);
HPQF_API std::span<const FormatInfo> all_formats();
inline const char* name(Format format) { return info(format).name; }
// Bits per element in memory: int12 lives in 16-bit lanes, int7 in 8-bit lanes, tf32 in fp32 words, int4 packs in
// pairs.
HPQF_API int storage_bits(Format format);

// Upper and lower case are accepted. "fp8" means fp8_e4m3 (fp8_e5m2 for gradients; the plan resolves that).
HPQF_API std::optional<Format> find_format(std::string_view name);
HPQF_API Format parse_format(std::string_view name);  // Error with the list of names

enum class Rounding : uint8_t { nearest_even, stochastic };

// The definition. Codes sit in the low bits of the result; those of tf32 are the fp32 pattern with 13 zero bits;
// integers are two's complement, symmetric (never the most negative code), of `bits` bits.
//   rounding   To nearest, ties to even; or stochastic: away from zero if `random` + (fraction cut off) * 2^32 >= 2^32,
//   so
//              with probability equal to the fraction when `random` is uniform in [0, 2^32). fp32 is never rounded.
//   overflow   A finite value beyond the largest becomes infinity, or the largest where the format saturates.
//   infinity   Stays; NaN in fp8_e4m3, which has none.
//   NaN        The quiet NaN of its sign without payload (fp32 keeps its bits).
//   integers   A NaN or infinity has no code: encode gives 0, round_to gives NaN, a block's scale becomes NaN.
//              Zero has no sign.
// Source: IEEE 754-2019; "OCP 8-bit Floating Point Specification (OFP8)" rev 1.0, 2023, for fp8.
HPQF_API uint32_t encode(Format format, float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0);
HPQF_API float decode(Format format, uint32_t code);  // bits above the code's width are ignored
// decode(encode(x)); an integer format's NaN or infinity gives NaN.
HPQF_API float round_to(Format format, float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0);
// Is x finite, but beyond the largest finite value once rounded?
HPQF_API bool overflows(Format format, float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0);

}  // namespace hpqf::formats

namespace hpqf {
using formats::Format;
using formats::Rounding;
}  // namespace hpqf
