#include "hpqf/kernels/ref/activation_ref.h"

#include <cmath>
#include <numbers>

namespace hpqf::kernels::ref {
namespace {

// The distribution function f(x) / x of each activation, and its density.
struct Distribution {
  double below, density;
};

// 1 / (1 + exp(-z)) and its derivative. In terms of exp(-|z|) nothing overflows and nothing cancels.
Distribution logistic(double z) {
  const double e = std::exp(-std::abs(z)), r = 1 / (1 + e);
  return {z < 0 ? e * r : r, e * r * r};
}

Distribution distribution(Activation function, double x) {
  switch (function) {
    case Activation::gelu:
      return {0.5 * std::erfc(-x / std::numbers::sqrt2), std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi)};
    case Activation::gelu_tanh: {
      // (1 + tanh(u)) / 2 is the logistic function of 2 u.
      const double c = std::sqrt(8 / std::numbers::pi);
      const Distribution d = logistic(c * (x + 0.044715 * x * x * x));
      return {d.below, d.density * c * (1 + 3 * 0.044715 * x * x)};
    }
    case Activation::silu:
      return logistic(x);
  }
  return {};
}

float shifted(float x, const float* bias, int64_t at, int64_t cols) { return bias ? x + bias[at % cols] : x; }

// The limits at infinity, where the formulas say infinity times 0.
constexpr double kFar = 1000;

}  // namespace

double activation(Activation function, double x) { return (x < -kFar ? -kFar : x) * distribution(function, x).below; }

double activation_gradient(Activation function, double x) {
  const double near = x < -kFar ? -kFar : x > kFar ? kFar : x;
  const Distribution d = distribution(function, near);
  return d.below + near * d.density;
}

void activation_forward(const ActivationForward& a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    a.y[i] = static_cast<float>(activation(a.function, shifted(a.x[i], a.bias, i, a.cols)));
  }
}

void activation_backward(const ActivationBackward& a, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    a.dx[i] = static_cast<float>(a.dy[i] * activation_gradient(a.function, shifted(a.x[i], a.bias, i, a.cols)));
  }
}

}  // namespace hpqf::kernels::ref
