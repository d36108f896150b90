// Sixteen floats in an AVX-512 register: the interface of Float8 (float8.h says why it looks so).
//
// The masked forms with every lane on are the same instructions; some of the plain ones of GCC 12 warn of uninitialised
// lanes.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace hpqf::kernels {
namespace {

struct Float16 {
  static constexpr int64_t kWidth = 16;
  static constexpr __mmask16 kAll = 0xffff;
  __m512 v;

  static __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static Float16 constant(float x) { return {_mm512_set1_ps(x)}; }
  static Float16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Float16 load(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store(float* p, int64_t n) const { _mm512_mask_storeu_ps(p, first_lanes(n), v); }

  friend Float16 operator+(Float16 a, Float16 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Float16 operator-(Float16 a, Float16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Float16 operator*(Float16 a, Float16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Float16 operator/(Float16 a, Float16 b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend Float16 fma(Float16 a, Float16 b, Float16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Float16 fms(Float16 a, Float16 b, Float16 c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
  friend Float16 fnma(Float16 a, Float16 b, Float16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }

  friend Float16 smaller(Float16 a, Float16 b) { return {_mm512_maskz_min_ps(kAll, a.v, b.v)}; }
  friend Float16 larger(Float16 a, Float16 b) { return {_mm512_maskz_max_ps(kAll, a.v, b.v)}; }
  friend Float16 magnitude(Float16 a) { return {_mm512_maskz_andnot_ps(kAll, _mm512_set1_ps(-0.0f), a.v)}; }
  friend Float16 zero_where_less(Float16 a, Float16 b, Float16 value) {
    return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLT_UQ), value.v)};
  }
  friend Float16 where_negative(Float16 a, Float16 yes, Float16 no) {
    return {_mm512_mask_mov_ps(no.v, _mm512_movepi32_mask(_mm512_castps_si512(a.v)), yes.v)};
  }
  friend Float16 first_or(Float16 a, int64_t n, Float16 other) {
    return {_mm512_mask_mov_ps(other.v, first_lanes(n), a.v)};
  }
  friend Float16 bits_shifted_left_23(Float16 a) {
    return {_mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_castps_si512(a.v), 23))};
  }

  template <int kIndex>
  static __m256 half(Float16 a) {
    return _mm512_maskz_extractf32x8_ps(0xff, a.v, kIndex);
  }
  friend float sum(Float16 a) {
    const __m256 h = _mm256_add_ps(half<0>(a), half<1>(a));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  friend float largest(Float16 a) {
    const __m256 h = _mm256_max_ps(half<0>(a), half<1>(a));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }
};

bool runs_float16() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

}  // namespace
}  // namespace hpqf::kernels
