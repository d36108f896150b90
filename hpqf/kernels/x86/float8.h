// Eight floats in an AVX2 register, with what the elementwise kernels need of them. Tails by masked loads and stores,
// so that an element's result does not depend on where in the row it stands.
//
// In an unnamed namespace, like everything that is compiled once for each instruction set: a function shared with other
// files could be merged by the linker into the copy built for a newer CPU.
#pragma once
#include <immintrin.h>

#include <cstdint>

namespace hpqf::kernels {
namespace {

struct Float8 {
  static constexpr int64_t kWidth = 8;
  __m256 v;

  static __m256i first_lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Float8 constant(float x) { return {_mm256_set1_ps(x)}; }
  static Float8 load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static Float8 load(const float* p, int64_t n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }  // the others 0
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void store(float* p, int64_t n) const { _mm256_maskstore_ps(p, first_lanes(n), v); }

  friend Float8 operator+(Float8 a, Float8 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Float8 operator-(Float8 a, Float8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Float8 operator*(Float8 a, Float8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Float8 operator/(Float8 a, Float8 b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend Float8 fma(Float8 a, Float8 b, Float8 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }    // a b + c
  friend Float8 fms(Float8 a, Float8 b, Float8 c) { return {_mm256_fmsub_ps(a.v, b.v, c.v)}; }    // a b - c
  friend Float8 fnma(Float8 a, Float8 b, Float8 c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a b

  // The second operand wins when either is NaN.
  friend Float8 smaller(Float8 a, Float8 b) { return {_mm256_min_ps(a.v, b.v)}; }
  friend Float8 larger(Float8 a, Float8 b) { return {_mm256_max_ps(a.v, b.v)}; }
  friend Float8 magnitude(Float8 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
  friend Float8 zero_where_less(Float8 a, Float8 b, Float8 value) {  // a < b ? 0 : value; value where either is NaN
    return {_mm256_andnot_ps(_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ), value.v)};
  }
  friend Float8 where_negative(Float8 a, Float8 yes, Float8 no) {  // by the sign bit
    return {_mm256_blendv_ps(no.v, yes.v, a.v)};
  }
  friend Float8 first_or(Float8 a, int64_t n, Float8 other) {  // the first n lanes of a, then those of other
    return {_mm256_blendv_ps(other.v, a.v, _mm256_castsi256_ps(first_lanes(n)))};
  }
  friend Float8 bits_shifted_left_23(Float8 a) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a.v), 23))};
  }

  friend float sum(Float8 a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  friend float largest(Float8 a) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }
};

bool runs_float8() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

}  // namespace
}  // namespace hpqf::kernels
