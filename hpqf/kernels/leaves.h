// The inner loops that differ by instruction set. Everything around them (blocks, scales, threads) is written once, in
// drive.cc.
#pragma once
#include <cstdint>

#include "hpqf/kernels/round_params.h"

namespace hpqf::kernels {

// Column loops read and write their column arrays (maxima, scales) up to this many elements past the end.
inline constexpr int kColumnPad = 16;

struct Counts {
  int64_t nonfinite = 0, overflow = 0;
};

// `random`: one number per element for stochastic rounding, else null. `n` < 2^31 - 64. Every out may equal in.
struct Leaves {
  // Largest of |x| as bit patterns, so that a NaN or infinity shows (pattern >= 0x7f800000).
  int32_t (*largest_bits)(const float* x, int64_t n);
  // The same for each column of rows lying `stride` apart.
  void (*largest_bits_columns)(const float* x, int64_t rows, int64_t columns, int64_t stride, int32_t* largest);

  // formats::block_scale of n largest magnitudes; reads and writes up to kColumnPad past n.
  void (*block_scales)(const RoundParams& format, bool pow2, const int32_t* largest, int64_t n, float* scales);

  Counts (*round)(const RoundParams& format, const float* in, float* out, int64_t n, const uint32_t* random);
  void (*round_scaled)(const RoundParams& format, const float* in, float* out, int64_t n, float scale,
                       const uint32_t* random);
  // One scale per column; the numbers of `random` lie rows after rows, `columns` apart.
  void (*round_columns)(const RoundParams& format, const float* in, float* out, int64_t rows, int64_t columns,
                        int64_t stride, const float* scales, const uint32_t* random);

  void (*codes)(const RoundParams& format, const float* in, int8_t* out, int64_t n, float scale);
  void (*codes_columns)(const RoundParams& format, const float* in, int8_t* out, int64_t rows, int64_t columns,
                        int64_t stride, const float* scales);

  // Philox blocks first .. first + blocks - 1 of a stream, four words each; writes whole groups of 16 blocks.
  void (*random)(uint32_t* out, uint64_t seed, uint64_t stream, uint64_t first, int64_t blocks);

  int64_t (*scale_and_count)(float* data, int64_t n, float factor);                 // non-finite products
  void (*fingerprint)(uint32_t* lanes, const unsigned char* data, int64_t groups);  // see fingerprint.h
};

const Leaves& portable_leaves();  // 128-bit vectors, no instruction set beyond the build's own
const Leaves& avx2_leaves();      // x86 builds only
const Leaves& avx512_leaves();    // x86 builds only

}  // namespace hpqf::kernels
