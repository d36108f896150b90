// Rounding eight elements to codes.
#pragma once
#include <immintrin.h>

#include "hpqf/kernels/gemm/layout.h"

#define HPQF_INLINE [[gnu::always_inline]] inline

namespace hpqf::kernels {

// Random bits, 16 a lane in the low half; see layout.h.
HPQF_INLINE __m256i random16(__m256i keyed) {
  __m256i y = _mm256_mullo_epi32(keyed, _mm256_set1_epi32(int(kHash1)));
  y = _mm256_mullo_epi32(_mm256_xor_si256(y, _mm256_srli_epi32(y, 15)), _mm256_set1_epi32(int(kHash2)));
  return _mm256_srli_epi32(y, 16);
}

// Codes of eight elements. Stochastic: floor(x * inverse + u) in 16.16 fixed point; `inverse` then holds 2^16 / scale.
template <bool kStochastic>
HPQF_INLINE __m256i quantised(__m256 x, __m256 inverse, __m256i keyed) {
  const __m256i v = _mm256_cvtps_epi32(_mm256_mul_ps(x, inverse));
  if constexpr (!kStochastic) return v;
  return _mm256_srai_epi32(_mm256_add_epi32(v, random16(keyed)), 16);
}

}  // namespace hpqf::kernels
