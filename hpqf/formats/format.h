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
  const char* name;        // the one spelling of code, CLI, JSON and docs
  int bits;                // bits stored per element
  int exponent_bits;       // 0 for integers
  int mantissa_bits;       // explicit fraction bits; integers: bits - 1
  float largest;           // largest finite magnitude (integers: largest code magnitude; codes are symmetric)
  float smallest_normal;   // integers: 1
  float smallest;          // smallest positive value (subnormal); integers: 1
  bool is_integer;
  bool saturates;          // overflow clips to +-largest (integers, fp8); false: IEEE overflow to infinity
  bool has_infinity;
  bool has_nan;            // integers: a NaN makes the block scale NaN instead
};

HPQF_API const FormatInfo& info(Format format);
HPQF_API std::span<const FormatInfo> all_formats();
inline const char* name(Format format) { return info(format).name; }

// Upper and lower case are accepted. "fp8" means fp8_e4m3 (fp8_e5m2 for gradients; the plan resolves that).
HPQF_API std::optional<Format> find_format(std::string_view name);
HPQF_API Format parse_format(std::string_view name);   // Error with the list of names

enum class Rounding : uint8_t { nearest_even, stochastic };

// The definition. Codes sit in the low bits; integers are two's complement, symmetric (never the most negative code).
// `random` in [0, 2^32) decides stochastic rounding: rounds away with probability equal to the fraction cut off.
HPQF_API uint32_t encode(Format format, float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0);
HPQF_API float decode(Format format, uint32_t code);
// decode(encode(x)); an integer format's NaN gives NaN.
HPQF_API float round_to(Format format, float x, Rounding rounding = Rounding::nearest_even, uint32_t random = 0);

}  // namespace hpqf::formats

namespace hpqf {
using formats::Format;
using formats::Rounding;
}  // namespace hpqf
