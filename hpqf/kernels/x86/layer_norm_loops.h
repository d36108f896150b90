// LayerNorm over vectors V of floats (Float8, Float16).
#pragma once
#include "hpqf/kernels/layer_norm.h"
#include "hpqf/kernels/x86/rows.h"

namespace hpqf::kernels {
namespace {

template <class V>
struct LayerNormLoops {
  static V times_weight(V v, const float* weight, int64_t j, int64_t n) {
    return weight ? v * load_lanes<V>(weight + j, n) : v;
  }

  // The mean from one pass, the variance from a second one over c = x - mean (two-pass algorithm, corrected for the
  // rounding of the mean: Chan, Golub, LeVeque 1983). The mean of c is what the rounded mean lacks; it enters y too, so
  // that a row far from 0 loses nothing but what its own rounding lost.
  static void forward(const LayerNormForward& a, int64_t first, int64_t last) {
    const int64_t cols = a.cols;
    const double inverse = 1.0 / static_cast<double>(cols);
    for (int64_t row = first; row < last; ++row) {
      const float* x = a.x + row * cols;
      float* y = a.y + row * cols;
      Sums<V> sums, deviations, squares;
      over_row<V>(cols, [&](int64_t j, int64_t n, int k) { sums.part[k] = sums.part[k] + load_lanes<V>(x + j, n); });
      const float mean = static_cast<float>(sums.total() * inverse);
      const V center = V::constant(mean);
      over_row<V>(cols, [&](int64_t j, int64_t n, int k) {
        V c = load_lanes<V>(x + j, n) - center;
        if (n < V::kWidth) c = first_or(c, n, V::constant(0.0f));
        deviations.part[k] = deviations.part[k] + c;
        squares.part[k] = fma(c, c, squares.part[k]);
      });
      const double rest = deviations.total() * inverse, variance = squares.total() * inverse - rest * rest;
      const double rstd = 1.0 / __builtin_sqrt((variance > 0 || variance != variance ? variance : 0.0) + a.eps);
      const V factor = V::constant(static_cast<float>(rstd)), shift = V::constant(static_cast<float>(-rest * rstd));
      over_row<V>(cols, [&](int64_t j, int64_t n, int) {
        const V normal = times_weight(fma(load_lanes<V>(x + j, n) - center, factor, shift), a.weight, j, n);
        store_lanes(a.bias ? normal + load_lanes<V>(a.bias + j, n) : normal, y + j, n);
      });
      a.mean[row] = static_cast<float>(mean + rest);
      a.rstd[row] = static_cast<float>(rstd);
    }
  }

  // Two rows at a time would read and write the sums over rows half as often: 13 % less time from the level-2 cache,
  // but 15 to 45 % more from memory, where training takes them from.
  static void backward(const LayerNormBackward& a, const LayerNormPiece& piece) {
    const int64_t cols = a.cols;
    if (piece.dweight) {
      for (int64_t j = 0; j < cols; ++j) piece.dweight[j] = piece.dbias[j] = 0.0f;
    }
    for (int64_t row = piece.first; row < piece.last; ++row) {
      const float *x = a.x + row * cols, *dy = a.dy + row * cols;
      const V mean = V::constant(a.mean[row]), rstd = V::constant(a.rstd[row]);
      V gradient_mean = V::constant(0.0f), product_mean = gradient_mean;
      if (a.dx) {
        const double inverse = 1.0 / static_cast<double>(cols);
        Sums<V> gradients, products;
        over_row<V>(cols, [&](int64_t j, int64_t n, int k) {
          const V g = times_weight(load_lanes<V>(dy + j, n), a.weight, j, n);
          gradients.part[k] = gradients.part[k] + g;
          products.part[k] = fma(g, (load_lanes<V>(x + j, n) - mean) * rstd, products.part[k]);
        });
        gradient_mean = V::constant(static_cast<float>(gradients.total() * inverse));
        product_mean = V::constant(static_cast<float>(products.total() * inverse));
      }
      over_row<V>(cols, [&](int64_t j, int64_t n, int) {
        const V normal = (load_lanes<V>(x + j, n) - mean) * rstd, d = load_lanes<V>(dy + j, n);
        if (piece.dweight) {
          store_lanes(fma(d, normal, load_lanes<V>(piece.dweight + j, n)), piece.dweight + j, n);
          store_lanes(d + load_lanes<V>(piece.dbias + j, n), piece.dbias + j, n);
        }
        if (a.dx) {
          const V g = times_weight(d, a.weight, j, n) - gradient_mean;
          store_lanes(rstd * fnma(normal, product_mean, g), a.dx + row * cols + j, n);
        }
      });
    }
  }

  static constexpr LayerNormImplementation implementation(const char* name, bool (*runnable)()) {
    return {name, runnable, &forward, &backward};
  }
};

}  // namespace
}  // namespace hpqf::kernels
