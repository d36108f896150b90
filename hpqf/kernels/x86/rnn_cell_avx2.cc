// Eight lanes at a time. exp by range reduction and a degree-5 polynomial (Cephes expf, within 2 units in the last
// place); tails by masked loads, so an element's result does not depend on where in the row it stands.
#include <immintrin.h>

#include "hpqf/kernels/rnn_cell_loops.h"

namespace hpqf::kernels {
namespace {

__m256i tail_mask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// exp(x) for x <= 0 or NaN; below -87.33 (results under the smallest normal) exactly 0.
__m256 exp_nonpositive(__m256 x) {
  const __m256 lowest = _mm256_set1_ps(-87.33f);
  const __m256 underflow = _mm256_cmp_ps(x, lowest, _CMP_LT_OQ);
  x = _mm256_max_ps(lowest, x);  // the second operand wins when it is NaN
  const __m256 k = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(0.693359375f), x);  // ln 2 in two parts: k * 0.693359375 is exact
  r = _mm256_fnmadd_ps(k, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0f)));
  const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127)), 23);
  return _mm256_andnot_ps(underflow, _mm256_mul_ps(p, _mm256_castsi256_ps(exponent)));
}

struct Avx2 {
  static constexpr int64_t kWidth = 8;
  __m256 v;
  static Avx2 load(const float* p, int64_t n) {
    return {n == kWidth ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, tail_mask(n))};
  }
  void store(float* p, int64_t n) const {
    if (n == kWidth) {
      _mm256_storeu_ps(p, v);
    } else {
      _mm256_maskstore_ps(p, tail_mask(n), v);
    }
  }
  static Avx2 constant(float x) { return {_mm256_set1_ps(x)}; }
  friend Avx2 operator+(Avx2 a, Avx2 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Avx2 operator-(Avx2 a, Avx2 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Avx2 operator*(Avx2 a, Avx2 b) { return {_mm256_mul_ps(a.v, b.v)}; }

  // With e = exp(-|x|): 1 / (1 + e) for x >= 0, e / (1 + e) below: no overflow and full relative accuracy on both
  // sides.
  friend Avx2 sigmoid(Avx2 a) {
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    const __m256 e = exp_nonpositive(_mm256_or_ps(a.v, sign));
    return {_mm256_div_ps(_mm256_blendv_ps(one, e, a.v), _mm256_add_ps(one, e))};
  }

  // |x| < 0.625: odd polynomial (Cephes tanhf); else (1 - e) / (1 + e) with e = exp(-2 |x|), where nothing cancels.
  friend Avx2 tanh(Avx2 a) {
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    const __m256 magnitude = _mm256_andnot_ps(sign, a.v);
    const __m256 e = exp_nonpositive(_mm256_mul_ps(magnitude, _mm256_set1_ps(-2.0f)));
    const __m256 large = _mm256_div_ps(_mm256_sub_ps(one, e), _mm256_add_ps(one, e));
    const __m256 s = _mm256_mul_ps(a.v, a.v);
    __m256 p = _mm256_set1_ps(-5.70498872745e-3f);
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(2.06390887954e-2f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(-5.37397155531e-2f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(1.33314422036e-1f));
    p = _mm256_fmadd_ps(p, s, _mm256_set1_ps(-3.33332819422e-1f));
    const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(p, s), a.v, a.v);
    const __m256 is_small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0.625f), _CMP_LT_OQ);
    return {_mm256_blendv_ps(_mm256_or_ps(large, _mm256_and_ps(sign, a.v)), small, is_small)};
  }

  friend Avx2 relu(Avx2 a) { return {_mm256_max_ps(_mm256_setzero_ps(), a.v)}; }  // NaN stays: it is the second operand
  friend Avx2 relu_gradient(Avx2 h, Avx2 dh) {
    return {_mm256_andnot_ps(_mm256_cmp_ps(h.v, _mm256_setzero_ps(), _CMP_LE_OQ), dh.v)};
  }
};

bool runnable() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

}  // namespace

extern const RnnCellImplementation kRnnCellAvx2;
const RnnCellImplementation kRnnCellAvx2 = RnnCellLoops<Avx2>::implementation("avx2", &runnable);

}  // namespace hpqf::kernels
