// The kernels over plain C types. See hpqf/base/c_api.h for what is returned; the arrays and what may be null are those
// of the headers named.
#pragma once
#include <cstdint>

#include "hpqf/base/export.h"

extern "C" {

// quantize_dequantize of x[outer][axis][inner], to nearest even. `block_format` as parse_block_format reads it. The
// counts may be null.
HPQF_API int hpqf_quantize_dequantize(const char* block_format, const float* x, float* out, int64_t outer, int64_t axis,
                                      int64_t inner, int64_t* nonfinite, int64_t* overflow);

// hpqf/kernels/activation.h. `function` is "gelu", "gelu_tanh" or "silu".
HPQF_API int hpqf_activation(const char* function, int64_t rows, int64_t cols, const float* x, const float* bias,
                             float* y);
HPQF_API int hpqf_activation_backward(const char* function, int64_t rows, int64_t cols, const float* x,
                                      const float* bias, const float* dy, float* dx);

// hpqf/kernels/softmax.h. `log` is 0 or 1.
HPQF_API int hpqf_softmax(int log, float scale, int64_t rows, int64_t cols, const float* x, float* y);
HPQF_API int hpqf_softmax_backward(int log, float scale, int64_t rows, int64_t cols, const float* y, const float* dy,
                                   float* dx);

// hpqf/kernels/layer_norm.h.
HPQF_API int hpqf_layer_norm(int64_t rows, int64_t cols, double eps, const float* x, const float* weight,
                             const float* bias, float* y, float* mean, float* rstd);
HPQF_API int64_t hpqf_layer_norm_scratch(int64_t rows, int64_t cols);
HPQF_API int hpqf_layer_norm_backward(int64_t rows, int64_t cols, const float* x, const float* mean, const float* rstd,
                                      const float* weight, const float* dy, float* dx, float* dweight, float* dbias,
                                      float* scratch);

}  // extern "C"
