// Transpositions of 32-bit words with 256-bit vectors: 4 x 4 within each 128-bit half, so that one half serves record j
// and the other record j + 4.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "hpqf/kernels/gemm/conv_kernels.h"
#include "hpqf/kernels/gemm/x86/round_avx2.h"

namespace hpqf::kernels {
namespace {

HPQF_INLINE void transpose(__m256i (&v)[4]) {
  const __m256i t0 = _mm256_unpacklo_epi32(v[0], v[1]), t1 = _mm256_unpackhi_epi32(v[0], v[1]);
  const __m256i t2 = _mm256_unpacklo_epi32(v[2], v[3]), t3 = _mm256_unpackhi_epi32(v[2], v[3]);
  v[0] = _mm256_unpacklo_epi64(t0, t2), v[1] = _mm256_unpackhi_epi64(t0, t2);
  v[2] = _mm256_unpacklo_epi64(t1, t3), v[3] = _mm256_unpackhi_epi64(t1, t3);
}

HPQF_INLINE __m256i load(const char* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }
HPQF_INLINE void store(char* p, __m256i v) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), v); }
HPQF_INLINE __m256i load_halves(const void* low, const void* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(low))),
                                 _mm_loadu_si128(static_cast<const __m128i*>(high)), 1);
}
HPQF_INLINE void store_halves(void* low, void* high, __m256i v) {
  _mm_storeu_si128(static_cast<__m128i*>(low), _mm256_castsi256_si128(v));
  _mm_storeu_si128(static_cast<__m128i*>(high), _mm256_extracti128_si256(v, 1));
}

// Four words at `at` of eight records.
HPQF_INLINE void load_words(const char* const* record, int64_t at, __m256i (&v)[4]) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) v[j] = load_halves(record[j] + at, record[j + 4] + at);
  transpose(v);
}

void spread(const RecordLayout& layout, const char* panel, char* const* record) {
  const int64_t block_bytes = layout.panel_block();
  const bool starts = layout.grid == Grid::int8;
  const __m256i zero = _mm256_setzero_si256();
  for (int half = 0; half < 2; ++half, panel += 32, record += 8) {
    for (int64_t b = 0; b < layout.blocks; b += 2) {
      const char *x = panel + b * block_bytes, *y = x + block_bytes;
      const bool two = b + 1 < layout.blocks;
      __m256i v[4] = {load(x), starts ? load(x + 64) : zero, two ? load(y) : zero, two && starts ? load(y + 64) : zero};
      transpose(v);
      for (int j = 0; j < 4; ++j) store_halves(record[j] + 8 * b, record[j + 4] + 8 * b, v[j]);
    }
    for (int64_t b = 0; b < layout.blocks; ++b) {
      const char* x = panel + b * block_bytes + b_header(layout.grid);
      const int64_t at = layout.header() + b * layout.code_bytes();
      for (int64_t q = 0; q < layout.code_bytes(); q += 16, x += 256) {
        __m256i v[4] = {load(x), load(x + 64), load(x + 128), load(x + 192)};
        transpose(v);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) store_halves(record[j] + at + q, record[j + 4] + at + q, v[j]);
      }
    }
  }
}

void gather(const RecordLayout& layout, const char* const* record, int64_t distance, int64_t first, int64_t last,
            char* panel) {
  const int64_t block_bytes = layout.panel_block(), code_bytes = layout.code_bytes();
  const bool starts = layout.grid == Grid::int8;
  for (int half = 0; half < 2; ++half, panel += 32, record += 8) {
    const char* here[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) here[j] = record[j] + distance;
    for (int64_t b = first; b < last;) {
      __m256i v[4];
      load_words(here, b / 2 * 16, v);
      for (const int64_t end = std::min(last, b / 2 * 2 + 2); b < end; ++b) {
        char* out = panel + (b - first) * block_bytes;
        store(out, v[b % 2 * 2]);
        if (starts) store(out + 64, v[b % 2 * 2 + 1]);
      }
    }
    for (int64_t b = first; b < last; ++b) {
      char* out = panel + (b - first) * block_bytes + b_header(layout.grid);
      const int64_t at = layout.header() + b * code_bytes;
      for (int64_t q = 0; q < code_bytes; q += 16, out += 256) {
        __m256i v[4];
        load_words(here, at + q, v);
#pragma GCC unroll 4
        for (int w = 0; w < 4; ++w) store(out + 64 * w, v[w]);
      }
    }
  }
}

void store_columns(const float* from, int64_t stride, int64_t rows, float* const* to) {
  for (int half = 0; half < 2; ++half, from += 8, to += 8) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      __m256i v[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + (r + i) * stride));
      transpose(v);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) store_halves(to[j] + r, to[j + 4] + r, v[j]);
    }
    for (; r < rows; ++r)
      for (int j = 0; j < 8; ++j) to[j][r] = from[r * stride + j];
  }
}

uint32_t largest(const float* from, int64_t n) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  auto bits = [&](const float* p) {
    return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), mask);
  };
  __m256i m0 = _mm256_setzero_si256(), m1 = m0;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    m0 = _mm256_max_epi32(m0, bits(from + i));
    m1 = _mm256_max_epi32(m1, bits(from + i + 8));
  }
  alignas(32) float rest[16] = {};
  if (i < n) {
    std::memcpy(rest, from + i, size_t(n - i) * 4);
    m0 = _mm256_max_epi32(m0, bits(rest));
    m1 = _mm256_max_epi32(m1, bits(rest + 8));
  }
  m0 = _mm256_max_epi32(m0, m1);
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(m0), _mm256_extracti128_si256(m0, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return uint32_t(_mm_cvtsi128_si32(m));
}

template <Grid G, bool kStochastic>
HPQF_INLINE void codes_as(const CodeJob& job, const float* from, int64_t n, int64_t k, char* out) {
  constexpr int kStep = G == Grid::int8 ? 32 : 16;
  const __m256 inverse = _mm256_set1_ps(job.inverse);
  const __m256i offset = _mm256_set1_epi8(char(job.offset)), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i iota = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(kWeyl)));
  alignas(32) float rest[kStep];
  for (int64_t i = 0; i < n; i += kStep) {
    const float* x = from + i;
    if (n - i < kStep) {
      std::memset(rest, 0, sizeof rest);
      std::memcpy(rest, x, size_t(n - i) * 4);
      x = rest;
    }
    __m256i q[kStep / 8];
#pragma GCC unroll 4
    for (int j = 0; j < kStep / 8; ++j) {
      __m256i keyed = _mm256_setzero_si256();
      if constexpr (kStochastic)
        keyed = _mm256_add_epi32(iota, _mm256_set1_epi32(int(job.key + uint32_t(k + i + 8 * j) * kWeyl)));
      q[j] = quantised<kStochastic>(_mm256_loadu_ps(x + 8 * j), inverse, keyed);
    }
    __m256i v = _mm256_packs_epi32(q[0], q[1]);
    if constexpr (G == Grid::int8) {
      v = _mm256_packs_epi16(v, _mm256_packs_epi32(q[2], q[3]));
      v = _mm256_add_epi8(_mm256_permutevar8x32_epi32(v, order), offset);
    } else {
      v = _mm256_permute4x64_epi64(v, 0xD8);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * lane_bytes(G)), v);
  }
}

void codes(const CodeJob& job, const float* from, int64_t n, int64_t k, char* out) {
  if (job.grid == Grid::int8)
    job.stochastic ? codes_as<Grid::int8, true>(job, from, n, k, out)
                   : codes_as<Grid::int8, false>(job, from, n, k, out);
  else
    job.stochastic ? codes_as<Grid::int12, true>(job, from, n, k, out)
                   : codes_as<Grid::int12, false>(job, from, n, k, out);
}

void every_second(Grid grid, const char* from, int64_t n, char* out) {
  const bool bytes = grid == Grid::int8;
  const __m128i mask = bytes ? _mm_set1_epi16(0xff) : _mm_set1_epi32(0xffff);
  const int64_t end = n * lane_bytes(grid);
  for (int64_t i = 0; i < end; i += 16) {
    const __m128i x = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i)), mask);
    const __m128i y = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * i + 16)), mask);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bytes ? _mm_packus_epi16(x, y) : _mm_packus_epi32(x, y));
  }
}

void interleave(const char* const* row, int64_t bytes, char* out) {
  for (int64_t i = 0; i < bytes; i += 32, out += 128) {
    __m256i v[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) v[r] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row[r] + i));
    transpose(v);
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) store_halves(out + 16 * w, out + 64 + 16 * w, v[w]);
  }
}

}  // namespace

const ConvKernels kAvx2ConvKernels = {.spread = spread,
                                      .gather = gather,
                                      .store_columns = store_columns,
                                      .largest = largest,
                                      .codes = codes,
                                      .every_second = every_second,
                                      .interleave = interleave};

}  // namespace hpqf::kernels
