#include "hpqf/kernels/ref/layer_norm_ref.h"

#include <cmath>

namespace hpqf::kernels::ref {

void layer_norm_forward(const LayerNormForward& a, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const float* x = a.x + row * a.cols;
    float* y = a.y + row * a.cols;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < a.cols; ++j) mean += x[j];
    mean /= static_cast<double>(a.cols);
    for (int64_t j = 0; j < a.cols; ++j) variance += (x[j] - mean) * (x[j] - mean);
    const double rstd = 1 / std::sqrt(variance / static_cast<double>(a.cols) + a.eps);
    for (int64_t j = 0; j < a.cols; ++j) {
      const double weight = a.weight ? a.weight[j] : 1.0, bias = a.bias ? a.bias[j] : 0.0;
      y[j] = static_cast<float>((x[j] - mean) * rstd * weight + bias);
    }
    a.mean[row] = static_cast<float>(mean);
    a.rstd[row] = static_cast<float>(rstd);
  }
}

void layer_norm_backward(const LayerNormBackward& a, const LayerNormPiece& piece) {
  const int64_t cols = a.cols;
  if (piece.dweight) {
    for (int64_t j = 0; j < cols; ++j) {
      double dweight = 0, dbias = 0;
      for (int64_t row = piece.first; row < piece.last; ++row) {
        const double dy = a.dy[row * cols + j];
        dweight += dy * (a.x[row * cols + j] - double{a.mean[row]}) * a.rstd[row];
        dbias += dy;
      }
      piece.dweight[j] = static_cast<float>(dweight);
      piece.dbias[j] = static_cast<float>(dbias);
    }
  }
  if (!a.dx) return;
  for (int64_t row = piece.first; row < piece.last; ++row) {
    const float *x = a.x + row * cols, *dy = a.dy + row * cols;
    float* dx = a.dx + row * cols;
    const double mean = a.mean[row], rstd = a.rstd[row];
    const auto gradient = [&](int64_t j) { return a.weight ? double{dy[j]} * a.weight[j] : double{dy[j]}; };
    double sum = 0, product = 0;
    for (int64_t j = 0; j < cols; ++j) {
      sum += gradient(j);
      product += gradient(j) * (x[j] - mean) * rstd;
    }
    sum /= static_cast<double>(cols), product /= static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) {
      dx[j] = static_cast<float>(rstd * (gradient(j) - sum - (x[j] - mean) * rstd * product));
    }
  }
}

}  // namespace hpqf::kernels::ref
