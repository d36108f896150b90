// Transpositions of 32-bit words with 256-bit vectors: 4 x 4 within each 128-bit half, so that one half serves record j
// and the other record j + 4.
#include <immintrin.h>

#include <algorithm>

#include "hpqf/kernels/gemm/conv_kernels.h"

namespace hpqf::kernels {
namespace {

#define HPQF_INLINE [[gnu::always_inline]] inline

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

}  // namespace

const ConvKernels kAvx2ConvKernels = {.spread = spread, .gather = gather, .store_columns = store_columns};

}  // namespace hpqf::kernels
