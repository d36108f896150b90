// softmax and log_softmax over vectors V of floats (Float8, Float16).
#pragma once
#include "hpqf/kernels/softmax.h"
#include "hpqf/kernels/x86/float_exp.h"
#include "hpqf/kernels/x86/rows.h"
#include "hpqf/kernels/x86/two.h"

namespace hpqf::kernels {
namespace {

template <class V>
struct SoftmaxLoops {
  using Pair = Two<V>;  // where exp is
  static constexpr float kNegativeInfinity = -__builtin_inff();

  // The largest scale x. NaN is passed over here: its own exp brings it into the sum, and so into the whole row.
  static float row_largest(const float* x, int64_t cols, V scale) {
    const V lowest = V::constant(kNegativeInfinity);
    V part[4] = {lowest, lowest, lowest, lowest};
    over_row<V>(cols, [&](int64_t j, int64_t n, int k) {
      V v = scale * load_lanes<V>(x + j, n);
      if (n < V::kWidth) v = first_or(v, n, lowest);
      part[k] = larger(v, part[k]);
    });
    return largest(larger(larger(part[0], part[1]), larger(part[2], part[3])));
  }

  // The sum of e = exp(scale x - m). `keep` gets each e.
  template <class Keep>
  static float row_sum(const float* x, int64_t cols, float scale, float m, const Keep& keep) {
    const Pair factor = Pair::constant(scale), largest = Pair::constant(m);
    Sums<Pair> sums;
    over_row<Pair>(cols, [&](int64_t j, int64_t n, int k) {
      Pair e = exp_flushed(factor * load_lanes<Pair>(x + j, n) - largest);
      if (n < Pair::kWidth) e = first_or(e, n, Pair::constant(0.0f));
      keep(e, j, n);
      sums.part[k % 2] = sums.part[k % 2] + e;
    });
    return sums.total();
  }

  static void forward(const SoftmaxForward& a, int64_t first, int64_t last) {
    const V scale = V::constant(a.scale);
    for (int64_t row = first; row < last; ++row) {
      const float* x = a.x + row * a.cols;
      float* y = a.y + row * a.cols;
      const float m = row_largest(x, a.cols, scale);
      if (a.log) {
        const float total = row_sum(x, a.cols, a.scale, m, [](Pair, int64_t, int64_t) {});
        const V log_total = V::constant(__builtin_logf(total)), top = V::constant(m);
        over_row<V>(a.cols, [&](int64_t j, int64_t n, int) {
          store_lanes(scale * load_lanes<V>(x + j, n) - top - log_total, y + j, n);
        });
      } else {
        const float total =
            row_sum(x, a.cols, a.scale, m, [&](Pair e, int64_t j, int64_t n) { store_lanes(e, y + j, n); });
        const V inverse = V::constant(1.0f / total);
        over_row<V>(a.cols,
                    [&](int64_t j, int64_t n, int) { store_lanes(load_lanes<V>(y + j, n) * inverse, y + j, n); });
      }
    }
  }

  static void backward(const SoftmaxBackward& a, int64_t first, int64_t last) {
    const V scale = V::constant(a.scale);
    for (int64_t row = first; row < last; ++row) {
      const float *y = a.y + row * a.cols, *dy = a.dy + row * a.cols;
      float* dx = a.dx + row * a.cols;
      Sums<V> sums;
      if (a.log) {
        over_row<V>(a.cols,
                    [&](int64_t j, int64_t n, int k) { sums.part[k] = sums.part[k] + load_lanes<V>(dy + j, n); });
        const Pair total = Pair::constant(sums.total()), factor = Pair::constant(a.scale);
        over_row<Pair>(a.cols, [&](int64_t j, int64_t n, int) {
          // A log probability is at most 0; anything above 88.4 becomes infinity.
          const Pair e = exp_flushed(smaller(Pair::constant(88.7f), load_lanes<Pair>(y + j, n)));
          store_lanes(factor * fnma(e, total, load_lanes<Pair>(dy + j, n)), dx + j, n);
        });
      } else {
        over_row<V>(a.cols, [&](int64_t j, int64_t n, int k) {
          sums.part[k] = fma(load_lanes<V>(y + j, n), load_lanes<V>(dy + j, n), sums.part[k]);
        });
        const V total = V::constant(sums.total());
        over_row<V>(a.cols, [&](int64_t j, int64_t n, int) {
          store_lanes(scale * load_lanes<V>(y + j, n) * (load_lanes<V>(dy + j, n) - total), dx + j, n);
        });
      }
    }
  }

  static constexpr SoftmaxImplementation implementation(const char* name, bool (*runnable)()) {
    return {name, runnable, &forward, &backward};
  }
};

}  // namespace
}  // namespace hpqf::kernels
