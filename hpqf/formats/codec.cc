// The scalar codec, in integer arithmetic only: the rounding mode and the denormal flags of the CPU cannot change it.
#include <algorithm>
#include <bit>
#include <limits>

#include "hpqf/formats/format.h"

namespace hpqf::formats {
namespace {

constexpr uint32_t kAbs = 0x7fffffffu, kInfinity = 0x7f800000u, kQuietNan = 0x7fc00000u;

// A finite magnitude as mantissa * 2^(exponent - 23), mantissa < 2^24.
struct Magnitude {
  uint32_t mantissa;
  int exponent;
};
Magnitude split(uint32_t abs_bits) {
  const int field = static_cast<int>(abs_bits >> 23);
  const uint32_t fraction = abs_bits & 0x7fffffu;
  return {field ? fraction | 0x800000u : fraction, std::max(field, 1) - 127};
}

// mantissa / 2^shift to an integer, shift >= 0. The fraction cut off is held in units of 2^-32; for shift > 32 its
// lower bits drop out, which cannot change a nearest result (the fraction is then below 2^-8).
uint32_t shift_round(uint32_t mantissa, int shift, Rounding rounding, uint32_t random) {
  const uint32_t whole = shift < 32 ? mantissa >> shift : 0;
  const uint32_t fraction = shift <= 32   ? static_cast<uint32_t>(uint64_t{mantissa} << (32 - shift))
                            : shift <= 63 ? mantissa >> (shift - 32)
                                          : 0;
  if (rounding == Rounding::stochastic) return whole + (uint64_t{fraction} + random > 0xffffffffu);
  return whole + (fraction > 0x80000000u || (fraction == 0x80000000u && (whole & 1)));
}

int smallest_exponent(const FormatInfo& f) { return 2 - (1 << (f.exponent_bits - 1)); }

// Codes of magnitudes grow with the magnitude, one by one, through subnormals, normals and (where there is one)
// infinity.
uint32_t largest_code(const FormatInfo& f) {
  const uint32_t top = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  return f.has_infinity ? top - (1u << f.mantissa_bits) : top - 1;  // without infinity only the last code is NaN
}

// The code of a finite magnitude with the exponent unbounded above: may be beyond largest_code().
uint32_t unbounded_float(const FormatInfo& f, uint32_t abs_bits, Rounding rounding, uint32_t random) {
  const Magnitude m = split(abs_bits);
  const int lowest = smallest_exponent(f);
  const int steps = std::max(m.exponent, lowest);
  const uint32_t q = shift_round(m.mantissa, 23 - f.mantissa_bits + steps - m.exponent, rounding, random);
  return (static_cast<uint32_t>(steps - lowest) << f.mantissa_bits) +
         q;  // the carry into the exponent is the right one
}

uint32_t unbounded_integer(uint32_t abs_bits, Rounding rounding, uint32_t random) {
  const Magnitude m = split(abs_bits);
  return m.exponent >= 23 ? 1u << 23
                          : shift_round(m.mantissa, 23 - m.exponent, rounding, random);  // all largest < 2^15
}

// Where the sign sits, above the magnitude; tf32 keeps the fp32 layout.
uint32_t place(const FormatInfo& f, bool negative, uint32_t magnitude) {
  if (f.format == Format::tf32) magnitude <<= 13;
  return magnitude | (static_cast<uint32_t>(negative) << (f.bits - 1));
}

uint32_t nan_code(const FormatInfo& f) {
  return f.has_infinity ? largest_code(f) + 1 + (1u << (f.mantissa_bits - 1)) : largest_code(f) + 1;
}

uint32_t encode_integer(const FormatInfo& f, bool negative, uint32_t abs_bits, Rounding rounding, uint32_t random) {
  if (abs_bits >= kInfinity) return 0;
  const uint32_t q = std::min(unbounded_integer(abs_bits, rounding, random), static_cast<uint32_t>(f.largest));
  return (negative ? 0u - q : q) & ((1u << f.bits) - 1);
}

float decode_integer(const FormatInfo& f, uint32_t code) {
  const int unused = 32 - f.bits;
  return static_cast<float>(static_cast<int32_t>(code << unused) >> unused);
}

}  // namespace

uint32_t encode(Format format, float x, Rounding rounding, uint32_t random) {
  const FormatInfo& f = info(format);
  const uint32_t bits = std::bit_cast<uint32_t>(x), abs_bits = bits & kAbs;
  const bool negative = bits >> 31;
  if (format == Format::fp32) return bits;
  if (f.is_integer) return encode_integer(f, negative, abs_bits, rounding, random);
  if (abs_bits > kInfinity) return place(f, negative, nan_code(f));
  if (abs_bits == kInfinity) return place(f, negative, f.has_infinity ? largest_code(f) + 1 : nan_code(f));
  const uint32_t code = unbounded_float(f, abs_bits, rounding, random);
  if (code <= largest_code(f)) return place(f, negative, code);
  return place(f, negative, f.saturates ? largest_code(f) : largest_code(f) + 1);
}

float decode(Format format, uint32_t code) {
  const FormatInfo& f = info(format);
  if (format == Format::fp32) return std::bit_cast<float>(code);
  if (f.is_integer) return decode_integer(f, code);
  if (format == Format::tf32) code = (code >> 13 & 0x3ffffu) | (code & 0x80000000u);
  const uint32_t sign = (code >> (f.bits - 1) & 1) << 31;
  const uint32_t magnitude = code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1);
  if (magnitude > largest_code(f))
    return std::bit_cast<float>(sign | (f.has_infinity && magnitude == largest_code(f) + 1 ? kInfinity : kQuietNan));
  const uint32_t field = magnitude >> f.mantissa_bits, fraction = magnitude & ((1u << f.mantissa_bits) - 1);
  const int widen = 23 - f.mantissa_bits;
  if (field != 0) {  // normal: move the bias
    const uint32_t moved = static_cast<uint32_t>(static_cast<int>(field) - 1 + smallest_exponent(f) + 127);
    return std::bit_cast<float>(sign | moved << 23 | fraction << widen);
  }
  if (f.exponent_bits == 8) return std::bit_cast<float>(sign | fraction << widen);  // subnormal in fp32 too
  // fraction * smallest: both exact and far from fp32's own subnormals.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(fraction) * f.smallest));
}

float round_to(Format format, float x, Rounding rounding, uint32_t random) {
  const bool finite = (std::bit_cast<uint32_t>(x) & kAbs) < kInfinity;
  if (info(format).is_integer && !finite) return std::numeric_limits<float>::quiet_NaN();
  return decode(format, encode(format, x, rounding, random));
}

bool overflows(Format format, float x, Rounding rounding, uint32_t random) {
  const FormatInfo& f = info(format);
  const uint32_t abs_bits = std::bit_cast<uint32_t>(x) & kAbs;
  if (abs_bits >= kInfinity || format == Format::fp32) return false;
  if (f.is_integer) return unbounded_integer(abs_bits, rounding, random) > static_cast<uint32_t>(f.largest);
  return unbounded_float(f, abs_bits, rounding, random) > largest_code(f);
}

}  // namespace hpqf::formats
