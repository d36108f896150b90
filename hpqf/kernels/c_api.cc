#include "hpqf/kernels/c_api.h"

#include <string>
#include <string_view>

#include "hpqf/base/c_api.h"
#include "hpqf/base/error.h"
#include "hpqf/kernels/activation.h"
#include "hpqf/kernels/layer_norm.h"
#include "hpqf/kernels/quantize.h"
#include "hpqf/kernels/softmax.h"

namespace hpqf::kernels {
namespace {

Activation parse_activation(std::string_view name) {
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_tanh") return Activation::gelu_tanh;
  if (name == "silu") return Activation::silu;
  throw Error("the activation '" + std::string(name) + "'", "gelu, gelu_tanh, silu", "name one of these");
}

}  // namespace
}  // namespace hpqf::kernels

using hpqf::base::c_guarded;
namespace kernels = hpqf::kernels;

extern "C" int hpqf_quantize_dequantize(const char* block_format, const float* x, float* out, int64_t outer,
                                        int64_t axis, int64_t inner, int64_t* nonfinite, int64_t* overflow) {
  return c_guarded([&] {
    const auto format = hpqf::formats::parse_block_format(block_format);
    const auto stats = hpqf::kernels::quantize_dequantize(x, out, {outer, axis, inner}, format);
    if (nonfinite) *nonfinite = stats.nonfinite_in;
    if (overflow) *overflow = stats.overflow;
  });
}

extern "C" int hpqf_activation(const char* function, int64_t rows, int64_t cols, const float* x, const float* bias,
                               float* y) {
  return c_guarded([&] {
    kernels::activation(kernels::ActivationForward{kernels::parse_activation(function), rows, cols, x, bias, y});
  });
}

extern "C" int hpqf_activation_backward(const char* function, int64_t rows, int64_t cols, const float* x,
                                        const float* bias, const float* dy, float* dx) {
  return c_guarded([&] {
    kernels::activation(kernels::ActivationBackward{kernels::parse_activation(function), rows, cols, x, bias, dy, dx});
  });
}

extern "C" int hpqf_softmax(int log, float scale, int64_t rows, int64_t cols, const float* x, float* y) {
  return c_guarded([&] { kernels::softmax(kernels::SoftmaxForward{rows, cols, log != 0, scale, x, y}); });
}

extern "C" int hpqf_softmax_backward(int log, float scale, int64_t rows, int64_t cols, const float* y, const float* dy,
                                     float* dx) {
  return c_guarded([&] { kernels::softmax(kernels::SoftmaxBackward{rows, cols, log != 0, scale, y, dy, dx}); });
}

extern "C" int hpqf_layer_norm(int64_t rows, int64_t cols, double eps, const float* x, const float* weight,
                               const float* bias, float* y, float* mean, float* rstd) {
  return c_guarded([&] {
    kernels::layer_norm(kernels::LayerNormForward{rows, cols, eps, x, weight, bias, y, mean, rstd});
  });
}

extern "C" int64_t hpqf_layer_norm_scratch(int64_t rows, int64_t cols) {
  return kernels::layer_norm_scratch(rows, cols);
}

extern "C" int hpqf_layer_norm_backward(int64_t rows, int64_t cols, const float* x, const float* mean,
                                        const float* rstd, const float* weight, const float* dy, float* dx,
                                        float* dweight, float* dbias, float* scratch) {
  return c_guarded([&] {
    kernels::layer_norm(kernels::LayerNormBackward{rows, cols, x, mean, rstd, weight, dy, dx, dweight, dbias, scratch});
  });
}
