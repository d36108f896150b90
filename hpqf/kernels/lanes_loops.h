// The loops of leaves.h for vectors of W lanes.
#pragma once
#include "hpqf/kernels/fingerprint.h"
#include "hpqf/kernels/lanes_round.h"
#include "hpqf/kernels/leaves.h"

namespace hpqf::kernels {
namespace {

template <int W>
struct Loops {
  using F = typename Lanes<W>::F;
  using I = typename Lanes<W>::I;
  using U = typename Lanes<W>::U;
  static_assert(W <= kColumnPad);

  [[gnu::always_inline]] static I magnitude(const F& x) { return as<I>(x) & kAbsBits; }
  [[gnu::always_inline]] static U random_at(const uint32_t* random, int64_t i) {
    return random ? load<U>(random + i) : U{};
  }

  static int32_t largest_bits(const float* x, int64_t n) {
    I most[2] = {};  // two chains, or the loop waits for the latency of max
    int64_t i = 0;
    for (; i + 2 * W <= n; i += 2 * W) {
      most[0] = larger(most[0], magnitude(load<F>(x + i)));
      most[1] = larger(most[1], magnitude(load<F>(x + i + W)));
    }
    for (; i < n; i += W)
      most[0] = larger(most[0], magnitude(i + W <= n ? load<F>(x + i) : load_first<F>(x + i, n - i)));
    return largest_lane<W / 2>(larger(most[0], most[1]));
  }

  // Column loops cover a row with whole vectors, the last one ending at the last column and overlapping its neighbour.
  // Rows shorter than a vector go through load_first.
  static void largest_bits_columns(const float* x, int64_t rows, int64_t columns, int64_t stride, int32_t* largest) {
    const int64_t whole = columns / W * W, last = columns - W;
    for (int64_t j = 0; j < columns; j += W) store(largest + j, I{});
    I most{};  // of the last, overlapping vector
    for (int64_t r = 0; r < rows; ++r, x += stride) {
      for (int64_t j = 0; j < whole; j += W)
        store(largest + j, larger(load<I>(largest + j), magnitude(load<F>(x + j))));
      if (whole != columns) most = larger(most, magnitude(last >= 0 ? load<F>(x + last) : load_first<F>(x, columns)));
    }
    if (whole != columns) store(largest + (last >= 0 ? last : 0), most);
  }

  // --- rounding without a scale, with counts ---
  template <typename Rounder>
  static Counts round_run(const RoundParams& p, const float* in, float* out, int64_t n, const uint32_t* random) {
    const Rounder rounder(p);
    I nonfinite{}, overflow{};  // counted down: a true lane is -1
    const auto one = [&](const F& x, const U& numbers) __attribute__((always_inline)) {
      const I zero{}, m = magnitude(x), sign = as<I>(x) & ~kAbsBits;
      const I infinite = m >= kInfinityBits;
      I r;
      if constexpr (Rounder::kOwnRange) {
        r = rounder(smaller(m, zero + p.beyond), numbers);
        const I over = r > p.largest;
        overflow += over & ~infinite;
        r = over ? zero + p.overflow : r;
      } else {
        r = rounder(m, numbers);
        overflow += (r >= kInfinityBits) & ~infinite;
      }
      nonfinite += infinite;
      r = infinite ? (m > kInfinityBits ? zero + kQuietNanBits : zero + p.infinity) : r;
      return as<F>(r | sign);
    };
    int64_t i = 0;
    for (; i + W <= n; i += W) store(out + i, one(load<F>(in + i), random_at(random, i)));
    if (i < n) {
      const U numbers = random ? load_first<U>(random + i, n - i) : U{};
      store_first(out + i, one(load_first<F>(in + i, n - i), numbers), n - i);
    }
    return {-sum(nonfinite), -sum(overflow)};
  }

  static Counts copy_run(const float* in, float* out, int64_t n) {
    I nonfinite{};
    int64_t i = 0;
    for (; i + W <= n; i += W) {
      const I x = load<I>(in + i);  // integers: a signalling NaN stays one
      nonfinite += (x & kAbsBits) >= kInfinityBits;
      store(out + i, x);
    }
    for (; i < n; ++i) {
      int32_t x;
      __builtin_memcpy(&x, in + i, sizeof x);
      nonfinite[0] -= (x & kAbsBits) >= kInfinityBits;
      __builtin_memcpy(out + i, &x, sizeof x);
    }
    return {-sum(nonfinite), 0};
  }

  static Counts round(const RoundParams& p, const float* in, float* out, int64_t n, const uint32_t* random) {
    switch (p.kind) {
      case RoundParams::Kind::copy:
        return copy_run(in, out, n);
      case RoundParams::Kind::bits:
        return random ? round_run<BitsRounder<W, true>>(p, in, out, n, random)
                      : round_run<BitsRounder<W, false>>(p, in, out, n, random);
      case RoundParams::Kind::quantum:
        return random ? round_run<QuantumRounder<W, true>>(p, in, out, n, random)
                      : round_run<QuantumRounder<W, false>>(p, in, out, n, random);
    }
    return {};
  }

  // --- rounding with scales (always the quantum method: bf16 and wider take no scale) ---
  // x / scale, cut to the largest code and rounded: finite even where scale or x is not.
  template <typename Rounder>
  [[gnu::always_inline]] static F code(const Rounder& rounder, const RoundParams& p, const F& x, const F& scale,
                                       const U& numbers) {
    const F y = x / scale;
    const I r = rounder(smaller(magnitude(y), I{} + p.largest), numbers);
    return as<F>(r | (as<I>(y) & ~kAbsBits)) + p.zero;
  }

  template <bool kStochastic>
  static void round_scaled_run(const RoundParams& p, const float* in, float* out, int64_t n, float scale,
                               const uint32_t* random) {
    const QuantumRounder<W, kStochastic> rounder(p);
    const F scales = F{} + scale;
    int64_t i = 0;
    for (; i + W <= n; i += W) store(out + i, code(rounder, p, load<F>(in + i), scales, random_at(random, i)) * scales);
    if (i < n) {
      const U numbers = random ? load_first<U>(random + i, n - i) : U{};
      store_first(out + i, code(rounder, p, load_first<F>(in + i, n - i), scales, numbers) * scales, n - i);
    }
  }
  static void round_scaled(const RoundParams& p, const float* in, float* out, int64_t n, float scale,
                           const uint32_t* random) {
    random ? round_scaled_run<true>(p, in, out, n, scale, random)
           : round_scaled_run<false>(p, in, out, n, scale, random);
  }

  template <bool kStochastic>
  static void round_columns_run(const RoundParams& p, const float* in, float* out, int64_t rows, int64_t columns,
                                int64_t stride, const float* scales, const uint32_t* random) {
    const QuantumRounder<W, kStochastic> rounder(p);
    const int64_t whole = columns / W * W, last = columns - W;
    for (int64_t r = 0; r < rows; ++r, in += stride, out += stride) {
      const uint32_t* numbers = random ? random + r * columns : nullptr;
      const auto one = [&](const F& x, const F& scale, const U& number) __attribute__((always_inline)) {
        return code(rounder, p, x, scale, number) * scale;
      };
      if (last < 0) {
        const U number = random ? load_first<U>(numbers, columns) : U{};
        store_first(out, one(load_first<F>(in, columns), load<F>(scales), number), columns);
        continue;
      }
      const F tail = load<F>(in + last);  // before the vectors it overlaps are written, in case out is in
      for (int64_t j = 0; j < whole; j += W)
        store(out + j, one(load<F>(in + j), load<F>(scales + j), random_at(numbers, j)));
      if (whole != columns) store(out + last, one(tail, load<F>(scales + last), random_at(numbers, last)));
    }
  }
  static void round_columns(const RoundParams& p, const float* in, float* out, int64_t rows, int64_t columns,
                            int64_t stride, const float* scales, const uint32_t* random) {
    random ? round_columns_run<true>(p, in, out, rows, columns, stride, scales, random)
           : round_columns_run<false>(p, in, out, rows, columns, stride, scales, random);
  }

  // formats::block_scale for many blocks at once. `largest` and `scales` may be read and written kColumnPad past n.
  static void block_scales(const RoundParams& p, bool pow2, const int32_t* largest, int64_t n, float* scales) {
    const F code = as<F>(I{} + p.largest);
    for (int64_t i = 0; i < n; i += W) {
      const I bits = load<I>(largest + i);
      I s = as<I>(as<F>(bits) / code);
      s = larger(s, I{} + 0x00800000);                                                     // the smallest normal
      if (pow2) s = as<I>((as<U>(s) + 0x7fffffu) & static_cast<uint32_t>(kInfinityBits));  // unsigned: a NaN may wrap
      store(scales + i, bits >= kInfinityBits ? I{} + kQuietNanBits : s);
    }
  }

  // --- integer codes ---
  // Sixty-four at a time through 32-bit lanes in memory: the narrowing loop is one that compilers turn into packs.
  static constexpr int kCodes = 64;
  [[gnu::always_inline]] static I wide_code(const QuantumRounder<W, false>& rounder, const RoundParams& p, const F& x,
                                            const F& scale) {
    return __builtin_convertvector(code(rounder, p, x, scale, U{}), I) & (scale == scale);  // a NaN scale says it all
  }
  [[gnu::always_inline]] static void narrow(const int32_t* wide, int8_t* out) {
    for (int k = 0; k < kCodes; ++k) out[k] = static_cast<int8_t>(wide[k]);
  }
  // One row, with a scale per column or (step 0) one vector of equal scales.
  [[gnu::always_inline]] static void codes_row(const QuantumRounder<W, false>& rounder, const RoundParams& p,
                                               const float* in, int8_t* out, int64_t n, const float* scales,
                                               int64_t step) {
    int32_t wide[kCodes];
    for (int64_t i = 0; i < n; i += kCodes) {
      const int64_t rest = n - i < kCodes ? n - i : kCodes;
      for (int64_t k = 0; k < rest; k += W) {
        const F x = k + W <= rest ? load<F>(in + i + k) : load_first<F>(in + i + k, rest - k);
        store(wide + k, wide_code(rounder, p, x, load<F>(scales + (i + k) * step)));
      }
      if (rest == kCodes) {
        narrow(wide, out + i);
      } else {
        for (int64_t k = 0; k < rest; ++k) out[i + k] = static_cast<int8_t>(wide[k]);
      }
    }
  }
  static void codes(const RoundParams& p, const float* in, int8_t* out, int64_t n, float scale) {
    float scales[W];
    store(scales, F{} + scale);
    codes_row(QuantumRounder<W, false>(p), p, in, out, n, scales, 0);
  }
  static void codes_columns(const RoundParams& p, const float* in, int8_t* out, int64_t rows, int64_t columns,
                            int64_t stride, const float* scales) {
    for (int64_t r = 0; r < rows; ++r)
      codes_row(QuantumRounder<W, false>(p), p, in + r * stride, out + r * stride, columns, scales, 1);
  }

  static int64_t scale_and_count(float* data, int64_t n, float factor) {
    I nonfinite{};
    const F factors = F{} + factor;
    int64_t i = 0;
    for (; i + W <= n; i += W) {
      const F y = load<F>(data + i) * factors;
      nonfinite += magnitude(y) >= kInfinityBits;
      store(data + i, y);
    }
    if (i < n) {
      const F y = load_first<F>(data + i, n - i) * factors;
      int32_t lanes[W];
      store(lanes, magnitude(y) >= kInfinityBits);
      for (int64_t k = 0; k < n - i; ++k)
        nonfinite[0] += lanes[k];  // 0 * inf in the lanes past the end counts for nothing
      store_first(data + i, y, n - i);
    }
    return -sum(nonfinite);
  }

  static void fingerprint(uint32_t* lanes, const unsigned char* data, int64_t groups) {
    constexpr int kVectors = kFingerprintLanes / W;
    U h[kVectors];
    for (int v = 0; v < kVectors; ++v) h[v] = load<U>(lanes + v * W);
    for (int64_t g = 0; g < groups; ++g, data += 4 * kFingerprintLanes)
      for (int v = 0; v < kVectors; ++v) {
        h[v] = (h[v] ^ load<U>(data + 4 * v * W)) * kFingerprintPrime;
        h[v] ^= h[v] >> 15;
      }
    for (int v = 0; v < kVectors; ++v) store(lanes + v * W, h[v]);
  }
};

}  // namespace
}  // namespace hpqf::kernels
