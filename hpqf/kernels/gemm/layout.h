// How packed operands lie in memory, and what the codes in them may be.
//
// An operand is cut into panels of rows (4 of A, 16 of B) and blocks of k. A packed block is
//   A   float scale[4];                                   words[k / unit][4]
//   B   float scale[16]; int32 start[16] (int8 only);     words[k / unit][16]
// where a word is 32 bits: 4 consecutive k of a row on the int8 grid, 2 on int12. The last block of a row is padded
// with zeros to a multiple of 32 k only.
//
// int8: A is stored as code + offset, unsigned, because the multiply instructions take u8 x s8. The offset is taken
// back for free: accumulators start at -offset * sum(b) of the block, the `start` of each column.
//
// The bound of the AVX2 path. vpmaddubsw adds two products in 16 bits, and two such results are added in 16 bits before
// vpmaddwd widens them: in one lane meet k = 8v + {0,1,4,5}, in the next 8v + {2,3,6,7}. Codes of A are at most 63,
// stored 1 .. 127. The scale of B is at least sum(|b|) / 255.9 for every such group of four; rounding adds at most 1/2
// a code, so the codes of a group sum to at most floor(255.9 + 4/2) = 257, and |lane| <= 127 * 257 = 32639 < 32768.
// Stochastic rounding adds less than 1 a code: sum(|b|) / 253.9 gives floor(253.9 + 4) = 257 again.
// For random data the group hardly costs resolution: the largest of four together is rarely four times the mean.
//
// int12: 2047^2 * 256 < 2^31 with room, so int32 holds a block exactly.
#pragma once
#include <cstdint>

#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::kernels {

inline constexpr int kPanelA = 4, kPanelB = 16;
inline constexpr int kPadK = 32;
inline constexpr int kMaxBlock = 256;

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t lane_bytes(Grid g) { return g == Grid::int8 ? 1 : 2; }
constexpr int64_t a_header(Grid) { return kPanelA * 4; }
constexpr int64_t b_header(Grid g) { return kPanelB * 4 * (g == Grid::int8 ? 2 : 1); }

// The blocks of one operand along k.
struct BlockGrid {
  Grid grid;
  int64_t k, block;
  int64_t count() const { return divide_up(k, block); }
  int64_t used(int64_t b) const { return b + 1 < count() ? block : k - b * block; }  // elements of block b
  int64_t padded(int64_t b) const { return divide_up(used(b), kPadK) * kPadK; }      // ... as packed
  int64_t a_bytes(int64_t k_padded) const { return a_header(grid) + k_padded * kPanelA * lane_bytes(grid); }
  int64_t b_bytes(int64_t k_padded) const { return b_header(grid) + k_padded * kPanelB * lane_bytes(grid); }
  // Blocks first .. last - 1 of one panel.
  int64_t a_panel_bytes(int64_t first, int64_t last) const {
    return last == first ? 0 : (last - first - 1) * a_bytes(block) + a_bytes(padded(last - 1));
  }
  int64_t b_panel_bytes() const {
    return count() == 0 ? 0 : (count() - 1) * b_bytes(block) + b_bytes(padded(count() - 1));
  }
};

// Largest codes and scale rules of one side of a path.
struct CodeRule {
  float largest;     // 63, 127, 2047
  int offset;        // added to the stored codes of A
  bool bounded;      // groups of four are bounded as above
  int start_factor;  // B: start = start_factor * sum of codes
};

// Stochastic rounding may go up by almost one code, also from the largest value of a block: leave it a sixteenth.
constexpr float scale_divisor(float largest, bool stochastic) { return stochastic ? largest - 0.0625f : largest; }
constexpr float group_divisor(bool stochastic) { return stochastic ? 253.9f : 255.9f; }
// Smaller scales have no finite inverse (nearest), or none with the 2^16 of fixed-point arithmetic before it.
constexpr float smallest_scale(bool stochastic) { return stochastic ? 0x1p-110f : 0x1p-126f; }

// The 16 random bits of element (row, k): a multiplicative hash of a Weyl sequence along k, keyed by seed and row.
constexpr uint32_t mix32(uint32_t z) {
  z = (z ^ (z >> 16)) * 0x7feb352du;
  z = (z ^ (z >> 15)) * 0x846ca68bu;
  return z ^ (z >> 16);
}
constexpr uint32_t row_key(uint64_t seed, int64_t row) {
  return mix32(mix32(uint32_t(seed >> 32) ^ uint32_t(row)) ^ uint32_t(seed));
}
inline constexpr uint32_t kWeyl = 0x9E3779B9u, kHash1 = 0x7feb352du, kHash2 = 0x846ca68bu;
constexpr uint32_t random16(uint32_t key, int64_t k) {
  const uint32_t y = (key + uint32_t(k) * kWeyl) * kHash1;
  return ((y ^ (y >> 15)) * kHash2) >> 16;
}

}  // namespace hpqf::kernels
