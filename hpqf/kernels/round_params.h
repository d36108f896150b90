// A format boiled down to the constants a vector loop needs. Bit patterns are int32 because magnitudes compare as
// signed integers in every instruction set.
#pragma once
#include <cstdint>

#include "hpqf/formats/format.h"

namespace hpqf::kernels {

struct RoundParams {
  enum class Kind : uint8_t {
    copy,     // fp32
    bits,     // tf32, bf16: exponents of fp32, so only low fraction bits are dropped
    quantum,  // everything else: round |x| to a multiple of 2^(max(exponent, lowest) - mantissa). An integer is the
              // case in which the lowest exponent is so high (2^16 > 32767) that the multiple is always 1
  };
  Kind kind = Kind::copy;
  int dropped = 0;       // bits: fraction bits cut off
  int mantissa = 0;      // quantum: explicit fraction bits
  int32_t lowest = 0;    // quantum: pattern of 2^(lowest normal exponent)
  int32_t largest = 0;   // quantum: pattern of the largest finite magnitude
  int32_t beyond = 0;    // quantum: pattern of a power of two above `largest`; everything beyond is cut to it first
  int32_t overflow = 0;  // quantum: pattern an overflow becomes
  int32_t infinity = 0;  // pattern an infinity becomes
  float zero = 0;        // added to the result: -0 changes nothing, +0 takes the sign off a zero (integers)
};

// With an exponent e the constants of round_to(format, x * 2^e) * 2^-e: the format's range moved down by e binades,
// which costs the loops nothing. Formats with the exponents of fp32 have no range to move and take any e as 0. |e| <=
// kMostRangeExponent, so that every pattern stays a normal number. Exported for the tests.
inline constexpr int kMostRangeExponent = 80;
HPQF_API RoundParams round_params(Format format, int exponent = 0);

}  // namespace hpqf::kernels
