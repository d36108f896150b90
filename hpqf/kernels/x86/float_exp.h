// exp over a vector V of floats (Float8, Float16).
#pragma once

namespace hpqf::kernels {
namespace {

// exp(scale (x + low)) for a constant scale, a power of two or its negative, which costs nothing: it goes into the
// constants. low is what x lost in rounding, far below 1. Within 1.3 * 2^-24 relative for -87.33 <= scale x <= 88.37,
// which the caller sees to. NaN stays NaN.
//
// scale x = k ln 2 + scale r. Adding 1.5 * 2^23 + 127 rounds to an integer in the low bits, and leaves the exponent
// field of 2^k there at once. The polynomial is minimax over |scale r| <= ln(2) / 2: 3.1e-9 relative.
template <class V>
[[gnu::always_inline]] inline V exp_bounded(V x, V low, float scale) {
  const V magic = V::constant(12582912.0f + 127.0f);
  const V shifted = fma(x, V::constant(1.44269504088896341f * scale), magic);
  const V k = shifted - magic;
  V r = fnma(k, V::constant(0x1.62e43p-1f / scale), x);
  r = fnma(k, V::constant(-0x1.05c61p-29f / scale), r) + low;
  const float scale2 = scale * scale, scale4 = scale2 * scale2;
  V p = V::constant(0x1.6a2448p-10f * scale2 * scale4);
  p = fma(p, r, V::constant(0x1.1239d6p-7f * scale * scale4));
  p = fma(p, r, V::constant(0x1.5558f2p-5f * scale4));
  p = fma(p, r, V::constant(0x1.555492p-3f * scale * scale2));
  p = fma(p, r, V::constant(0x1.fffffcp-2f * scale2));
  p = fma(p, r, V::constant(scale));
  p = fma(p, r, V::constant(1.0f));
  return p * bits_shifted_left_23(shifted);
}

template <class V>
[[gnu::always_inline]] inline V exp_bounded(V x, float scale) {
  return exp_bounded(x, V::constant(-0.0f), scale);  // folds away, which adding +0 would not: -0 + 0 is +0
}

// exp(x) for any x <= 88.37. Results under the smallest normal number are 0: denormal ones would cost a microcode
// assist each, in softmax for every masked element.
template <class V>
[[gnu::always_inline]] inline V exp_flushed(V x) {
  const V lowest = V::constant(-87.33f);
  return zero_where_less(x, lowest, exp_bounded(larger(lowest, x), 1.0f));  // NaN stays: it is the second operand
}

}  // namespace
}  // namespace hpqf::kernels
