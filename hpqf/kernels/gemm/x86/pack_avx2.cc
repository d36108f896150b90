// Quantising and packing with 256-bit vectors. Two passes over each block: the largest magnitude (as integer bits, so
// that a NaN is seen), then the codes. The second pass finds the block in the first-level cache.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "hpqf/kernels/gemm/scratch.h"
#include "hpqf/kernels/gemm/x86/pack_avx2.h"
#include "hpqf/kernels/gemm/x86/round_avx2.h"

namespace hpqf::kernels {
namespace {

enum class Side : uint8_t { a, b };

HPQF_INLINE __m256i magnitude(const float* p) {
  return _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(p)), _mm256_set1_epi32(0x7fffffff));
}
HPQF_INLINE __m256 as_float(__m256i v) { return _mm256_castsi256_ps(v); }

// Scales of lanes whose largest magnitude has the bits `largest` and whose largest group of four sums to `group`.
struct Scales {
  __m256 scale, inverse;
  int bad;  // bit per lane: a NaN or infinity
};
template <bool kBounded, bool kStochastic>
HPQF_INLINE Scales make_scales(__m256i largest, __m256 group, float divisor) {
  const __m256i bad = _mm256_cmpgt_epi32(largest, _mm256_set1_epi32(0x7f7fffff));
  __m256 scale = _mm256_div_ps(as_float(largest), _mm256_set1_ps(divisor));
  if constexpr (kBounded)
    scale = _mm256_max_ps(scale, _mm256_div_ps(group, _mm256_set1_ps(group_divisor(kStochastic))));
  scale = _mm256_max_ps(scale, _mm256_set1_ps(smallest_scale(kStochastic)));
  __m256 inverse = _mm256_div_ps(_mm256_set1_ps(kStochastic ? 65536.0f : 1.0f), scale);
  // Codes 0 under a NaN scale.
  return {_mm256_or_ps(scale, as_float(bad)), _mm256_andnot_ps(as_float(bad), inverse),
          _mm256_movemask_ps(as_float(bad))};
}

// Largest of each of four vectors, as the low four lanes.
HPQF_INLINE __m128i largest_of_each(const __m256i* v) {
  auto half = [](__m256i x) { return _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)); };
  const __m128i a = half(v[0]), b = half(v[1]), c = half(v[2]), d = half(v[3]);
  const __m128i ab = _mm_max_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
  const __m128i cd = _mm_max_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
  return _mm_max_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}
HPQF_INLINE __m256i widen(__m128i v) { return _mm256_castsi128_si256(v); }

HPQF_INLINE __m256i byte_pair_sums(__m256i bytes) {  // int32 sums of four int8
  return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
}

// Sixteen-bit groups of |x| that meet in one lane of the AVX2 product, of 16 consecutive k (layout.h): lanes hold pair
// sums of {0,1}, {2,3}.. of each eight, added with those four further on.
HPQF_INLINE __m256 group_sums(__m256 x, __m256 y) {
  const __m256 s = _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  return _mm256_add_ps(s, _mm256_permute_ps(s, 0xB1));
}

// ---- Rows lie along k. Four rows of one block; words go to dst + word * stride.

template <Grid G, Side S, bool kBounded, bool kStochastic>
HPQF_INLINE int pack_rows(const float* const* row, int64_t k_padded, const CodeRule& rule, const uint32_t* keys,
                          int64_t k0, float* scale, int32_t* start, char* dst, int64_t stride) {
  __m256i largest[4];
  __m256 groups[4];
  for (int r = 0; r < 4; ++r) {
    const float* x = row[r];
    __m256i m0 = _mm256_setzero_si256(), m1 = m0;
    __m256 g = _mm256_setzero_ps();
    for (int64_t k = 0; k < k_padded; k += 16) {
      const __m256i a = magnitude(x + k), b = magnitude(x + k + 8);
      m0 = _mm256_max_epi32(m0, a);
      m1 = _mm256_max_epi32(m1, b);
      if constexpr (kBounded) g = _mm256_max_ps(g, group_sums(as_float(a), as_float(b)));
    }
    largest[r] = _mm256_max_epi32(m0, m1);
    groups[r] = g;
  }
  __m256 group = _mm256_setzero_ps();
  if constexpr (kBounded) {  // non-negative floats order as their bits do
    __m256i bits[4];
    for (int r = 0; r < 4; ++r) bits[r] = _mm256_castps_si256(groups[r]);
    group = as_float(widen(largest_of_each(bits)));
  }
  const Scales s = make_scales<kBounded, kStochastic>(widen(largest_of_each(largest)), group,
                                                      scale_divisor(rule.largest, kStochastic));
  _mm_storeu_ps(scale, _mm256_castps256_ps128(s.scale));
  alignas(16) float inverse[4];
  _mm_store_ps(inverse, _mm256_castps256_ps128(s.inverse));

  // The order in which the packing instructions leave words: dword d of the packed register holds word at[d].
  static constexpr int kAt8[8] = {0, 2, 4, 6, 1, 3, 5, 7}, kAt12[8] = {0, 1, 4, 5, 2, 3, 6, 7};
  constexpr const int* at = G == Grid::int8 ? kAt8 : kAt12;
  constexpr int kStep = G == Grid::int8 ? 32 : 16;
  const __m256i offset = _mm256_set1_epi8(char(rule.offset));
  const __m256i iota = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(kWeyl)));
  __m256i sums[4];
  for (auto& x : sums) x = _mm256_setzero_si256();
  for (int64_t k = 0; k < k_padded; k += kStep) {
    __m256i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const __m256 inv = _mm256_broadcast_ss(inverse + r);
      const float* x = row[r] + k;
      __m256i q[kStep / 8];
#pragma GCC unroll 4
      for (int i = 0; i < kStep / 8; ++i) {
        __m256i keyed = _mm256_setzero_si256();
        if constexpr (kStochastic)
          keyed = _mm256_add_epi32(iota, _mm256_set1_epi32(int(keys[r] + uint32_t(k0 + k + 8 * i) * kWeyl)));
        q[i] = quantised<kStochastic>(_mm256_loadu_ps(x + 8 * i), inv, keyed);
      }
      v[r] = _mm256_packs_epi32(q[0], q[1]);
      if constexpr (G == Grid::int8) {
        v[r] = _mm256_packs_epi16(v[r], _mm256_packs_epi32(q[2], q[3]));
        if constexpr (S == Side::b) sums[r] = _mm256_add_epi32(sums[r], byte_pair_sums(v[r]));
        if constexpr (S == Side::a) v[r] = _mm256_add_epi8(v[r], offset);
      }
    }
    const __m256i t0 = _mm256_unpacklo_epi32(v[0], v[1]), t1 = _mm256_unpackhi_epi32(v[0], v[1]);
    const __m256i t2 = _mm256_unpacklo_epi32(v[2], v[3]), t3 = _mm256_unpackhi_epi32(v[2], v[3]);
    const __m256i words[4] = {_mm256_unpacklo_epi64(t0, t2), _mm256_unpackhi_epi64(t0, t2),
                              _mm256_unpacklo_epi64(t1, t3), _mm256_unpackhi_epi64(t1, t3)};
    char* d = dst + k / (G == Grid::int8 ? 4 : 2) * stride;
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(d + at[j] * stride), _mm256_castsi256_si128(words[j]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(d + at[j + 4] * stride), _mm256_extracti128_si256(words[j], 1));
    }
  }
  if constexpr (G == Grid::int8 && S == Side::b)
    for (int r = 0; r < 4; ++r) {
      __m128i x = _mm_add_epi32(_mm256_castsi256_si128(sums[r]), _mm256_extracti128_si256(sums[r], 1));
      x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
      x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1));
      start[r] = rule.start_factor * _mm_cvtsi128_si32(x);
    }
  return __builtin_popcount(unsigned(s.bad) & 15u);
}

// ---- Rows lie across k: 16 columns of a strip [k_padded][kStrip], one block.

inline constexpr int64_t kStrip = 32;  // columns, copied: lines a power of two apart would share cache sets

template <Grid G, Side S, bool kBounded, bool kStochastic>
HPQF_INLINE int pack_columns(const float* strip, int64_t k_padded, const CodeRule& rule, const uint32_t* keys,
                             int64_t k0, float* scale, int32_t* start, char* const* dst, int64_t stride) {
  int bad = 0;
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const float* x = strip + 8 * half;
    __m256i largest = _mm256_setzero_si256();
    __m256 group = _mm256_setzero_ps();
    for (int64_t k = 0; k < k_padded; k += 8) {
      __m256 m[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        const __m256i bits = magnitude(x + (k + i) * kStrip);
        largest = _mm256_max_epi32(largest, bits);
        m[i] = as_float(bits);
      }
      if constexpr (kBounded) {
        // The association of pack_rows, so that both forms give the same scale: ((0+4) + (1+5)), ((2+6) + (3+7)).
        const __m256 g0 = _mm256_add_ps(_mm256_add_ps(m[0], m[4]), _mm256_add_ps(m[1], m[5]));
        const __m256 g1 = _mm256_add_ps(_mm256_add_ps(m[2], m[6]), _mm256_add_ps(m[3], m[7]));
        group = _mm256_max_ps(group, _mm256_max_ps(g0, g1));
      }
    }
    const Scales s = make_scales<kBounded, kStochastic>(largest, group, scale_divisor(rule.largest, kStochastic));
    _mm256_storeu_ps(scale + 8 * half, s.scale);
    bad |= s.bad << (8 * half);

    const __m256i key = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + 8 * half));
    auto codes = [&](int64_t k) {
      const __m256i keyed = _mm256_add_epi32(key, _mm256_set1_epi32(int(uint32_t(k0 + k) * kWeyl)));
      return quantised<kStochastic>(_mm256_load_ps(x + k * kStrip), s.inverse, keyed);
    };
    auto pair = [](__m256i a, __m256i b) { return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA); };
    auto put = [&](int64_t word, __m256i v) {
      if constexpr (S == Side::b) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(dst[0] + word * stride + 32 * half), v);
      } else {
        _mm_store_si128(reinterpret_cast<__m128i*>(dst[2 * half] + word * stride), _mm256_castsi256_si128(v));
        _mm_store_si128(reinterpret_cast<__m128i*>(dst[2 * half + 1] + word * stride), _mm256_extracti128_si256(v, 1));
      }
    };
    if constexpr (G == Grid::int12) {
      for (int64_t k = 0; k < k_padded; k += 2) put(k / 2, pair(codes(k), codes(k + 1)));
    } else {
      __m256i sums = _mm256_setzero_si256();
      const __m256i offset = _mm256_set1_epi8(char(rule.offset));
      const __m256i order = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1, 8, 9, 2, 3, 10,
                                             11, 4, 5, 12, 13, 6, 7, 14, 15);
      for (int64_t k = 0; k < k_padded; k += 4) {
        __m256i v = _mm256_packs_epi16(pair(codes(k), codes(k + 1)), pair(codes(k + 2), codes(k + 3)));
        v = _mm256_shuffle_epi8(v, order);
        if constexpr (S == Side::b) sums = _mm256_add_epi32(sums, byte_pair_sums(v));
        if constexpr (S == Side::a) v = _mm256_add_epi8(v, offset);
        put(k / 4, v);
      }
      if constexpr (S == Side::b)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(start + 8 * half),
                            _mm256_mullo_epi32(sums, _mm256_set1_epi32(rule.start_factor)));
    }
  }
  return __builtin_popcount(unsigned(bad));
}

// Several strips are copied in one pass over the lines of the block, so that each line is read in runs of 512 bytes:
// 128 bytes from each of thousands of pages miss the TLB at every step (2 ns an element instead of 0.7 from memory).
inline constexpr int64_t kStrips = 4;

// k lines k0 .. k0 + used from column `first` on into strips[kStrips][k_padded][kStrip], zeros beyond the matrix.
// Returns how many strips hold columns.
HPQF_INLINE int64_t copy_strips(const MatrixView& from, int64_t first, int64_t end, int64_t k0, int64_t used,
                                int64_t k_padded, float* strips) {
  const int64_t columns = std::min(std::min(end, from.rows) - first, kStrips * kStrip);
  const int64_t count = divide_up(columns, kStrip), whole = columns / kStrip;
  const float* x = from.data + k0 * from.stride + first;
  for (int64_t k = 0; k < used; ++k) {
    const float* line = x + k * from.stride;
    if (k + 4 < used)
      for (int64_t c = 0; c < columns; c += 16)
        _mm_prefetch(reinterpret_cast<const char*>(line + 4 * from.stride + c), _MM_HINT_T0);
    for (int64_t s = 0; s < whole; ++s) {
      float* out = strips + (s * k_padded + k) * kStrip;
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) _mm256_store_ps(out + 8 * i, _mm256_loadu_ps(line + s * kStrip + 8 * i));
    }
    if (whole < count) {
      float* out = strips + (whole * k_padded + k) * kStrip;
      const int64_t rest = columns - whole * kStrip;
      std::memcpy(out, line + whole * kStrip, size_t(rest) * 4);
      std::memset(out + rest, 0, size_t(kStrip - rest) * 4);
    }
  }
  for (int64_t s = 0; s < count; ++s)
    std::memset(strips + (s * k_padded + used) * kStrip, 0, size_t((k_padded - used) * kStrip) * 4);
  return count;
}

float* strip_buffer(int64_t block) {
  return reinterpret_cast<float*>(scratch(Scratch::strips, block * kStrip * kStrips * 4));
}

// Four rows starting at `first`, as pointers to k_padded readable elements: rows beyond the matrix and the padding of a
// last block read zeros.
struct RowSource {
  alignas(32) float copy[4][kMaxBlock];
  const float* row[4];
  uint32_t keys[4];
  void set(const MatrixView& from, int64_t first, int64_t k0, int64_t used, int64_t k_padded,
           const PackRounding& rounding) {
    for (int r = 0; r < 4; ++r) {
      const bool inside = first + r < from.rows;
      const float* x = inside ? from.data + (first + r) * from.stride + k0 : nullptr;
      if (!inside || used < k_padded) {
        if (inside) std::memcpy(copy[r], x, size_t(used) * 4);
        const int64_t kept = inside ? used : 0;
        std::memset(copy[r] + kept, 0, size_t(k_padded - kept) * 4);
        x = copy[r];
      }
      row[r] = x;
      keys[r] = row_key(rounding.seed, first + r);
    }
  }
};

template <Grid G, bool kStochastic>
int64_t pack_a_as(const PackJob& job, int64_t first, int64_t last, int64_t b0, int64_t b1, char* out) {
  const BlockGrid& grid = job.blocks;
  const int64_t panel_bytes = grid.a_panel_bytes(b0, b1);
  int64_t bad = 0;
  if (!job.from.k_major) {
    RowSource rows;
    for (int64_t p = first; p < last; ++p)
      for (int64_t b = b0; b < b1; ++b) {
        char* block = out + (p - first) * panel_bytes + (b - b0) * grid.a_bytes(grid.block);
        rows.set(job.from, p * kPanelA, b * grid.block, grid.used(b), grid.padded(b), job.rounding);
        bad += pack_rows<G, Side::a, false, kStochastic>(rows.row, grid.padded(b), job.rule, rows.keys, b * grid.block,
                                                         reinterpret_cast<float*>(block), nullptr, block + a_header(G),
                                                         16);
      }
    return bad;
  }
  alignas(16) char unused[kMaxBlock * kPanelA * 2];  // panels of the strip beyond `last`
  float* strips = strip_buffer(grid.block);
  constexpr int64_t kGroup = 4 * kPanelA;  // columns packed together
  for (int64_t b = b0; b < b1; ++b)
    for (int64_t p = first; p < last; p += kStrips * kStrip / kPanelA) {
      const int64_t padded = grid.padded(b);
      const int64_t count =
          copy_strips(job.from, p * kPanelA, last * kPanelA, b * grid.block, grid.used(b), padded, strips);
      for (int64_t g = 0; g < count * kStrip / kGroup && p + 4 * g < last; ++g) {
        char* block[4];
        char* words[4];
        uint32_t keys[kGroup];
        float scale[kGroup];
        for (int64_t j = 0; j < 4; ++j) {
          const int64_t panel = p + 4 * g + j;
          block[j] = panel < last ? out + (panel - first) * panel_bytes + (b - b0) * grid.a_bytes(grid.block) : nullptr;
          words[j] = block[j] ? block[j] + a_header(G) : unused;
          for (int r = 0; r < 4; ++r) keys[4 * j + r] = row_key(job.rounding.seed, panel * kPanelA + r);
        }
        const float* strip = strips + g / 2 * padded * kStrip + g % 2 * kGroup;
        bad += pack_columns<G, Side::a, false, kStochastic>(strip, padded, job.rule, keys, b * grid.block, scale,
                                                            nullptr, words, 16);
        for (int j = 0; j < 4; ++j)
          if (block[j]) std::memcpy(block[j], scale + 4 * j, 16);
      }
    }
  return bad;
}

template <Grid G, bool kBounded, bool kStochastic>
int64_t pack_b_as(const PackJob& job, int64_t first, int64_t last, char* out) {
  const BlockGrid& grid = job.blocks;
  const int64_t panel_bytes = grid.b_panel_bytes(), stride = 4 * kPanelB;
  int64_t bad = 0;
  auto at = [&](int64_t p, int64_t b) { return out + p * panel_bytes + b * grid.b_bytes(grid.block); };
  if (!job.from.k_major) {
    RowSource rows;
    for (int64_t p = first; p < last; ++p)
      for (int64_t b = 0; b < grid.count(); ++b)
        for (int q = 0; q < 4; ++q) {
          char* block = at(p, b);
          rows.set(job.from, p * kPanelB + 4 * q, b * grid.block, grid.used(b), grid.padded(b), job.rounding);
          bad += pack_rows<G, Side::b, kBounded, kStochastic>(
              rows.row, grid.padded(b), job.rule, rows.keys, b * grid.block, reinterpret_cast<float*>(block) + 4 * q,
              reinterpret_cast<int32_t*>(block + 64) + 4 * q, block + b_header(G) + 16 * q, stride);
        }
    return bad;
  }
  float* strips = strip_buffer(grid.block);
  for (int64_t b = 0; b < grid.count(); ++b)
    for (int64_t p = first; p < last; p += kStrips * kStrip / kPanelB) {
      const int64_t padded = grid.padded(b);
      const int64_t count =
          copy_strips(job.from, p * kPanelB, last * kPanelB, b * grid.block, grid.used(b), padded, strips);
      for (int64_t g = 0; g < count * kStrip / kPanelB && p + g < last; ++g) {
        char* block = at(p + g, b);
        char* words[1] = {block + b_header(G)};
        uint32_t keys[kPanelB];
        for (int r = 0; r < kPanelB; ++r) keys[r] = row_key(job.rounding.seed, (p + g) * kPanelB + r);
        const float* strip = strips + g / 2 * padded * kStrip + g % 2 * kPanelB;
        bad += pack_columns<G, Side::b, kBounded, kStochastic>(strip, padded, job.rule, keys, b * grid.block,
                                                               reinterpret_cast<float*>(block),
                                                               reinterpret_cast<int32_t*>(block + 64), words, stride);
      }
    }
  return bad;
}

}  // namespace

int64_t pack_a_avx2(const PackJob& job, int64_t first, int64_t last, int64_t b0, int64_t b1, char* out) {
  const bool stochastic = job.rounding.rounding == Rounding::stochastic;
  if (job.blocks.grid == Grid::int8)
    return stochastic ? pack_a_as<Grid::int8, true>(job, first, last, b0, b1, out)
                      : pack_a_as<Grid::int8, false>(job, first, last, b0, b1, out);
  return stochastic ? pack_a_as<Grid::int12, true>(job, first, last, b0, b1, out)
                    : pack_a_as<Grid::int12, false>(job, first, last, b0, b1, out);
}

int64_t pack_b_avx2(const PackJob& job, int64_t first, int64_t last, char* out) {
  const bool stochastic = job.rounding.rounding == Rounding::stochastic;
  if (job.blocks.grid == Grid::int12)
    return stochastic ? pack_b_as<Grid::int12, false, true>(job, first, last, out)
                      : pack_b_as<Grid::int12, false, false>(job, first, last, out);
  if (job.rule.bounded)
    return stochastic ? pack_b_as<Grid::int8, true, true>(job, first, last, out)
                      : pack_b_as<Grid::int8, true, false>(job, first, last, out);
  return stochastic ? pack_b_as<Grid::int8, false, true>(job, first, last, out)
                    : pack_b_as<Grid::int8, false, false>(job, first, last, out);
}

}  // namespace hpqf::kernels
