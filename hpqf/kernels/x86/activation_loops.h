// GELU and SiLU over a vector V of floats (Float8, Float16).
//
// Each is x times a distribution function that is nearly 0 or 1 from some |x| on. x is cut off there for all that the
// distribution is made of, so that nothing beyond, infinity included, needs a case of its own.
#pragma once
#include "hpqf/kernels/activation.h"
#include "hpqf/kernels/x86/float_exp.h"

namespace hpqf::kernels {
namespace {

// x cut off at +-limit. NaN stays.
template <class V>
V between(float limit, V x) {
  return smaller(V::constant(limit), larger(V::constant(-limit), x));
}

struct Gelu {
  static constexpr float kLimit = 12.9f;  // Phi(-12.9) is 2e-38, about the smallest normal number

  template <class V>
  struct Normal {
    V tail;  // Phi(-|x|)
    V bell;  // exp(-x^2 / 2)
  };

  // Phi(-w) = exp(-w^2 / 2) t P(t) with t = 1 / (1 + 0.35 w), P minimax over 0 <= w <= 13.4: 3.2e-8 relative. The form
  // is that of Hastings (1955), as in Abramowitz and Stegun 7.1.26. What w^2 loses in rounding goes into the exp: at w
  // = 12 it would be 4e-6 relative.
  template <class V>
  static Normal<V> normal(V w) {
    const V square = w * w, one = V::constant(1.0f), bell = exp_bounded(square, fms(w, w, square), -0.5f);
    const V t = one / fma(w, V::constant(0.35f), one);
    V p = V::constant(-0.029120667f);
    p = fma(p, t, V::constant(0.14384645f));
    p = fma(p, t, V::constant(-0.2554502f));
    p = fma(p, t, V::constant(0.15886576f));
    p = fma(p, t, V::constant(-0.022892283f));
    p = fma(p, t, V::constant(0.105413415f));
    p = fma(p, t, V::constant(0.119857535f));
    p = fma(p, t, V::constant(0.13985835f));
    p = fma(p, t, V::constant(0.13962162f));
    return {bell * (p * t), bell};
  }

  template <class V>
  static V value(V x) {  // -w Phi(-w) for negative x, x - w Phi(-w) else
    const V w = smaller(V::constant(kLimit), magnitude(x));
    return zero_where_less(x, V::constant(-kLimit), fnma(w, normal(w).tail, larger(V::constant(0.0f), x)));
  }

  template <class V>
  static V gradient(V x) {  // Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)
    const V near = between(kLimit, x);
    const Normal<V> n = normal(magnitude(near));
    const V below = where_negative(x, n.tail, V::constant(1.0f) - n.tail);
    return zero_where_less(x, V::constant(-kLimit), fma(near * V::constant(0.3989422804f), n.bell, below));
  }
};

// x / (1 + e) with e = exp(-z), z an odd function of x, cut off where x passes +-limit. 0 for x < -limit.
template <class V>
V logistic_value(float limit, V x, V e) {
  return zero_where_less(x, V::constant(-limit), x / (V::constant(1.0f) + e));
}

// Its derivative; x is cut off as well, and `slope` is dz/dx: r + x slope e r^2 with r = 1 / (1 + e).
template <class V>
V logistic_gradient(float limit, V x, V e, V slope) {
  const V r = V::constant(1.0f) / (V::constant(1.0f) + e), near = between(limit, x);
  return zero_where_less(x, V::constant(-limit), fma(near * slope * (e * r), r, r));
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)): one exp, and no cancellation for negative x.
struct GeluTanh {
  static constexpr float kLimit = 9.99f;           // 2 u is 87.1 there, just short of where exp overflows
  static constexpr float kLinear = 1.5957691216f;  // 2 sqrt(2 / pi)
  static constexpr float kCubic = 0.0713548163f;   // that times 0.044715

  template <class V>
  static V exponential(V near) {
    return exp_bounded(near * fma(near * near, V::constant(kCubic), V::constant(kLinear)), -1.0f);
  }

  template <class V>
  static V value(V x) {
    return logistic_value(kLimit, x, exponential(between(kLimit, x)));
  }

  template <class V>
  static V gradient(V x) {
    const V near = between(kLimit, x), slope = fma(near * near, V::constant(3 * kCubic), V::constant(kLinear));
    return logistic_gradient(kLimit, x, exponential(near), slope);
  }
};

struct Silu {
  static constexpr float kLimit = 87.1f;

  template <class V>
  static V exponential(V x) {
    return exp_bounded(between(kLimit, x), -1.0f);
  }

  template <class V>
  static V value(V x) {
    return logistic_value(kLimit, x, exponential(x));
  }

  template <class V>
  static V gradient(V x) {
    return logistic_gradient(kLimit, x, exponential(x), V::constant(1.0f));
  }
};

template <class V>
struct ActivationLoops {
  static constexpr int64_t kWidth = V::kWidth;

  // Calls body(i, n, bias) for pieces of n elements from i on that lie in one row; the bias begins with that of i.
  template <class Operands, class Body>
  static void pieces(const Operands& a, int64_t first, int64_t last, const Body& body) {
    if (!a.bias) return body(first, last - first, nullptr);
    while (first < last) {
      const int64_t col = first % a.cols, rest = a.cols - col, n = rest < last - first ? rest : last - first;
      body(first, n, a.bias + col);
      first += n;
    }
  }

  template <class Function>
  static void values(const float* x, const float* bias, float* y, int64_t n) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      const V v = V::load(x + i);
      Function::value(bias ? v + V::load(bias + i) : v).store(y + i);
    }
    if (const int64_t rest = n - i) {
      const V v = V::load(x + i, rest);
      Function::value(bias ? v + V::load(bias + i, rest) : v).store(y + i, rest);
    }
  }

  template <class Function>
  static void gradients(const float* x, const float* bias, const float* dy, float* dx, int64_t n) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      const V v = V::load(x + i);
      (V::load(dy + i) * Function::gradient(bias ? v + V::load(bias + i) : v)).store(dx + i);
    }
    if (const int64_t rest = n - i) {
      const V v = V::load(x + i, rest);
      (V::load(dy + i, rest) * Function::gradient(bias ? v + V::load(bias + i, rest) : v)).store(dx + i, rest);
    }
  }

  static void forward(const ActivationForward& a, int64_t first, int64_t last) {
    static constexpr decltype(&values<Gelu>) kFunctions[] = {&values<Gelu>, &values<GeluTanh>, &values<Silu>};
    const auto function = kFunctions[static_cast<int>(a.function)];
    pieces(a, first, last, [&](int64_t i, int64_t n, const float* bias) { function(a.x + i, bias, a.y + i, n); });
  }

  static void backward(const ActivationBackward& a, int64_t first, int64_t last) {
    static constexpr decltype(&gradients<Gelu>) kFunctions[] = {&gradients<Gelu>, &gradients<GeluTanh>,
                                                                &gradients<Silu>};
    const auto function = kFunctions[static_cast<int>(a.function)];
    pieces(a, first, last,
           [&](int64_t i, int64_t n, const float* bias) { function(a.x + i, bias, a.dy + i, a.dx + i, n); });
  }

  static constexpr ActivationImplementation implementation(const char* name, bool (*runnable)()) {
    return {name, runnable, &forward, &backward};
  }
};

}  // namespace
}  // namespace hpqf::kernels
