#include "hpqf/kernels/ref/softmax_ref.h"

#include <cmath>
#include <limits>

namespace hpqf::kernels::ref {

void softmax_forward(const SoftmaxForward& a, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* x = a.x + row * a.cols;
    float* y = a.y + row * a.cols;
    const double scale = a.scale;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < a.cols; ++j) largest = std::fmax(largest, scale * x[j]);
    for (int64_t j = 0; j < a.cols; ++j) sum += std::exp(scale * x[j] - largest);
    for (int64_t j = 0; j < a.cols; ++j) {
      const double below = scale * x[j] - largest;
      y[j] = static_cast<float>(a.log ? below - std::log(sum) : std::exp(below) / sum);
    }
  }
}

void softmax_backward(const SoftmaxBackward& a, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float *y = a.y + row * a.cols, *dy = a.dy + row * a.cols;
    float* dx = a.dx + row * a.cols;
    double sum = 0;
    for (int64_t j = 0; j < a.cols; ++j) sum += a.log ? double{dy[j]} : double{dy[j]} * y[j];
    for (int64_t j = 0; j < a.cols; ++j) {
      dx[j] = static_cast<float>(a.scale * (a.log ? dy[j] - std::exp(double{y[j]}) * sum : y[j] * (dy[j] - sum)));
    }
  }
}

}  // namespace hpqf::kernels::ref
