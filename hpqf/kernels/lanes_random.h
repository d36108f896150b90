// Philox4x32-10 (see base/random.h) on W counters at once.
#pragma once
#include "hpqf/kernels/lanes.h"

namespace hpqf::kernels {
namespace {

template <int W>
struct WideLanes {
  typedef uint64_t U __attribute__((vector_size(4 * W)));
};

// The product of the low halves of 64-bit lanes. GCC does not see that one instruction does it (and emulates a 64-bit
// multiply by shifts and adds), so files with such an instruction pass their own.
template <int W>
struct PlainMultiply {
  using U = typename WideLanes<W>::U;
  [[gnu::always_inline]] static U low_halves(const U& a, const U& b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }
};

// Transposing 4 x 4 words inside every 128 bits, in two steps.
struct LowPairs {  // a0 b0 a1 b1
  static constexpr int of(int k, int n) { return k / 4 * 4 + k % 4 / 2 + (k % 2) * n; }
};
struct HighPairs {  // a2 b2 a3 b3
  static constexpr int of(int k, int n) { return LowPairs::of(k, n) + 2; }
};
struct LowHalves {  // a0 a1 b0 b1
  static constexpr int of(int k, int n) { return k / 4 * 4 + k % 2 + (k % 4 / 2) * n; }
};
struct HighHalves {  // a2 a3 b2 b3
  static constexpr int of(int k, int n) { return LowHalves::of(k, n) + 2; }
};

template <int W, typename Multiply>
struct PhiloxLanes {
  using U = typename Lanes<W>::U;
  using Wide = typename WideLanes<W>::U;

  // 32 x 32 -> 64 bits: even lanes, then odd lanes moved down.
  [[gnu::always_inline]] static void multiply(const U& x, uint32_t by, U& high, U& low) {
    const Wide factor = Wide{} + by;
    const Wide even = Multiply::low_halves(as<Wide>(x), factor), odd = Multiply::low_halves(as<Wide>(x) >> 32, factor);
    high = as<U>((even >> 32) | (odd & 0xffffffff00000000u));
    low = as<U>((even & 0xffffffffu) | (odd << 32));
  }

  // Lane 4 L + j works on block j * W / 4 + L, so that the transposed vectors hold consecutive blocks.
  static void fill(uint32_t* out, uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks) {
    uint32_t order[W];
    for (uint32_t k = 0; k < W; ++k) order[k] = k % 4 * (W / 4) + k / 4;
    const U offsets = load<U>(order);
    for (int64_t b = 0; b < blocks; b += W, out += 4 * W) {
      const uint64_t block = first + static_cast<uint64_t>(b);
      U c0 = offsets + static_cast<uint32_t>(block);
      U c1 = static_cast<uint32_t>(block >> 32) + (as<U>(c0 < offsets) & 1);  // the carry of that sum
      U c2 = U{} + static_cast<uint32_t>(stream), c3 = U{} + static_cast<uint32_t>(stream >> 32);
      uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
      for (int round = 0; round < 10; ++round) {
        U high0, low0, high2, low2;
        multiply(c0, 0xD2511F53u, high0, low0);
        multiply(c2, 0xCD9E8D57u, high2, low2);
        c0 = high2 ^ c1 ^ key0;
        c1 = low2;
        c2 = high0 ^ c3 ^ key1;
        c3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
      }
      const U low01 = pick<LowPairs>(c0, c1), high01 = pick<HighPairs>(c0, c1);
      const U low23 = pick<LowPairs>(c2, c3), high23 = pick<HighPairs>(c2, c3);
      store(out, pick<LowHalves>(low01, low23));
      store(out + W, pick<HighHalves>(low01, low23));
      store(out + 2 * W, pick<LowHalves>(high01, high23));
      store(out + 3 * W, pick<HighHalves>(high01, high23));
    }
  }
};

}  // namespace
}  // namespace hpqf::kernels
