// Tiles of up to 8 x 32 with AVX-512 VNNI: two panels of A by two of B, sixteen int32 accumulators. vpdpbusd multiplies
// u8 by s8 and adds four products into 32 bits at once, so codes keep their full 8 bits and nothing needs a bound;
// vpdpwssd does the same for pairs of 16-bit lanes.
#include <immintrin.h>

#include "hpqf/kernels/gemm/x86/pack_avx2.h"

namespace hpqf::kernels {
namespace {

#define HPQF_INLINE [[gnu::always_inline]] inline

HPQF_INLINE __m512i word(const char* p) {
  int v;
  __builtin_memcpy(&v, p, 4);
  return _mm512_set1_epi32(v);
}

template <Grid G, int kA, int kB>
void tile(const TileJob& job) {
  const char *a = job.a, *b = job.b;
  const float* init = job.init;
  int64_t init_stride = job.init_stride;
  for (int64_t block = 0; block < job.blocks; ++block) {
    const int64_t k = block + 1 < job.blocks ? job.k : job.k_last;
    __m512i acc[kA * kPanelA][kB];
#pragma GCC unroll 2
    for (int q = 0; q < kB; ++q) {
      const __m512i start = G == Grid::int8 ? _mm512_load_si512(b + q * job.b_panel + 64) : _mm512_setzero_si512();
#pragma GCC unroll 8
      for (int i = 0; i < kA * kPanelA; ++i) acc[i][q] = start;
    }
    const char *x = a + a_header(G), *y = b + b_header(G);
    const int64_t steps = k / (G == Grid::int8 ? 4 : 2);
    for (int64_t step = 0; step < steps; ++step, x += 16, y += 64) {
      __m512i column[kB];
#pragma GCC unroll 2
      for (int q = 0; q < kB; ++q) column[q] = _mm512_load_si512(y + q * job.b_panel);
#pragma GCC unroll 8
      for (int i = 0; i < kA * kPanelA; ++i) {
        const __m512i row = word(x + i / kPanelA * job.a_panel + i % kPanelA * 4);
#pragma GCC unroll 2
        for (int q = 0; q < kB; ++q)
          acc[i][q] = G == Grid::int8 ? _mm512_dpbusd_epi32(acc[i][q], row, column[q])
                                      : _mm512_dpwssd_epi32(acc[i][q], row, column[q]);
      }
    }
#pragma GCC unroll 2
    for (int q = 0; q < kB; ++q) {
      const __m512 scale_b = _mm512_load_ps(b + q * job.b_panel);
#pragma GCC unroll 8
      for (int i = 0; i < kA * kPanelA; ++i) {
        float scale_a;
        __builtin_memcpy(&scale_a, a + i / kPanelA * job.a_panel + i % kPanelA * 4, 4);
        const __m512 s = _mm512_mul_ps(_mm512_set1_ps(scale_a), scale_b);
        const __m512 from = _mm512_loadu_ps(init + i * init_stride + q * kPanelB);
        _mm512_storeu_ps(job.c + i * job.c_stride + q * kPanelB,
                         _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[i][q]), s, from));
      }
    }
    init = job.c;
    init_stride = job.c_stride;
    a += job.a_block;
    b += job.b_block;
  }
}

template <Grid G>
void any_tile(const TileJob& job, int na, int nb) {
  if (na == 2)
    nb == 2 ? tile<G, 2, 2>(job) : tile<G, 2, 1>(job);
  else
    nb == 2 ? tile<G, 1, 2>(job) : tile<G, 1, 1>(job);
}

}  // namespace

const PathKernels kAvx512VnniKernels = {
    .a8 = {127, 128, false, 0},
    .b8 = {127, 0, false, -128},
    .a12 = {2047, 0, false, 0},
    .b12 = {2047, 0, false, 0},
    .panels_a = 2,
    .panels_b = 2,
    .pack_a = pack_a_avx2,
    .pack_b = pack_b_avx2,
    .tile8 = any_tile<Grid::int8>,
    .tile12 = any_tile<Grid::int12>,
    .conv = &kAvx2ConvKernels,
};

}  // namespace hpqf::kernels
