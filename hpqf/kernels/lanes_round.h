// Rounding one vector: two methods cover every format.
#pragma once
#include "hpqf/kernels/lanes.h"
#include "hpqf/kernels/round_params.h"

namespace hpqf::kernels {
namespace {

// tf32 and bf16: add half of the last kept bit (less one, plus that bit: ties to even), cut. A carry moves into the
// exponent and, at the end of the range, makes the infinity that IEEE asks for.
template <int W, bool kStochastic>
struct BitsRounder {
  static constexpr bool kOwnRange = false;  // overflow shows as an infinity
  using I = typename Lanes<W>::I;
  using U = typename Lanes<W>::U;
  int dropped;
  uint32_t keep, half_less_one;

  explicit BitsRounder(const RoundParams& p)
      : dropped(p.dropped), keep(~((1u << p.dropped) - 1)), half_less_one((1u << (p.dropped - 1)) - 1) {}

  // Patterns of magnitudes or infinity in, rounded patterns out; of a NaN, anything. Unsigned, because a NaN may wrap.
  [[gnu::always_inline]] I operator()(const I& magnitude, const U& random) const {
    const U m = as<U>(magnitude);
    if constexpr (kStochastic) return as<I>((m + (random >> (32 - dropped))) & keep);
    return as<I>((m + half_less_one + ((m >> dropped) & 1)) & keep);
  }
};

// Formats with a range of their own. Nearest: adding and subtracting 2^(e + 23 - mantissa) lets the adder round to
// multiples of 2^(e - mantissa), ties to even, where e = max(exponent of x, lowest exponent of the format). Stochastic:
// the definition in integers, the fraction cut off held in 32 bits.
template <int W, bool kStochastic>
struct QuantumRounder {
  static constexpr bool kOwnRange = true;  // overflow shows as a result above RoundParams::largest
  using F = typename Lanes<W>::F;
  using I = typename Lanes<W>::I;
  using U = typename Lanes<W>::U;
  int mantissa;
  int32_t lowest;

  explicit QuantumRounder(const RoundParams& p) : mantissa(p.mantissa), lowest(p.lowest) {}

  // Patterns of magnitudes up to RoundParams::beyond in, rounded patterns out.
  [[gnu::always_inline]] I operator()(const I& magnitude, const U& random) const {
    const I exponent = magnitude & kInfinityBits;
    if constexpr (kStochastic) return stochastic(magnitude, exponent, random);
    const F magic = as<F>(larger(exponent, exponent * 0 + lowest) + ((23 - mantissa) << 23));
    return as<I>((as<F>(magnitude) + magic) - magic);
  }

 private:
  [[gnu::always_inline]] I stochastic(const I& magnitude, const I& exponent, const U& random) const {
    const I zero = exponent * 0;
    const I significand = (magnitude & 0x7fffff) | ((exponent != 0) & 0x800000);
    const I own = larger(exponent, zero + 0x800000);  // subnormals share the lowest exponent
    const I steps = larger(own, zero + lowest);
    const I shift = ((steps - own) >> 23) + (23 - mantissa);  // at least 7: bits cut off
    const I whole = significand >> smaller(shift, zero + 31);
    // significand * 2^(32 - shift) modulo 2^32. Shift counts must stay below 32; the significand is below 2^24.
    const I left = smaller(larger(32 - shift, zero), zero + 31);
    const I right = smaller(larger(shift - 32, zero), zero + 31);
    const U fraction = (as<U>(significand) << as<U>(left)) >> as<U>(right);
    const I up = as<I>(random > ~fraction) & 1;  // random + fraction >= 2^32
    const F quantum = as<F>(steps - (mantissa << 23));
    return as<I>(__builtin_convertvector(whole + up, F) * quantum);
  }
};

}  // namespace
}  // namespace hpqf::kernels
