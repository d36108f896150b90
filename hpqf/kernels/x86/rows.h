// Sums over a row in vectors V of floats (Float8, Float16): four running sums, added up at the end in a fixed order.
// They hide the latency of the addition, and each collects a quarter of the rounding errors.
#pragma once
#include <cstdint>

namespace hpqf::kernels {
namespace {

// Calls body(j, n, k) for the vectors of a row: n lanes from j on, n = V::kWidth but for the last one. k is 0 to 3 in
// turn in the greater part of the row, and a constant after inlining: it picks the accumulator.
template <class V, class Body>
[[gnu::always_inline]] inline void over_row(int64_t cols, const Body& body) {
  constexpr int64_t kWidth = V::kWidth;
  int64_t j = 0;
  for (; j + 4 * kWidth <= cols; j += 4 * kWidth) {
    body(j, kWidth, 0);
    body(j + kWidth, kWidth, 1);
    body(j + 2 * kWidth, kWidth, 2);
    body(j + 3 * kWidth, kWidth, 3);
  }
  for (; j + kWidth <= cols; j += kWidth) body(j, kWidth, 0);
  if (j < cols) body(j, cols - j, 1);
}

template <class V>
[[gnu::always_inline]] inline V load_lanes(const float* p, int64_t n) {
  return n == V::kWidth ? V::load(p) : V::load(p, n);
}
template <class V>
[[gnu::always_inline]] inline void store_lanes(V v, float* p, int64_t n) {
  if (n == V::kWidth) {
    v.store(p);
  } else {
    v.store(p, n);
  }
}

template <class V>
struct Sums {
  V part[4] = {V::constant(0.0f), V::constant(0.0f), V::constant(0.0f), V::constant(0.0f)};
  float total() const { return sum((part[0] + part[1]) + (part[2] + part[3])); }
};

}  // namespace
}  // namespace hpqf::kernels
