// GELU, SiLU, softmax and LayerNorm on our own fp32 kernels: what a transformer's step spends outside its products.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "hpqf/engine/layer.h"

namespace hpqf::engine {

// Each returns nothing where our kernels do not serve (another device, type, layout or axis, transforms, no AVX2), or
// when the plan runs no layer on our own kernels: plans in fp32, and emulated ones, stay bit-identical to torch.
// Differentiable; second derivatives go through torch's formulas.
std::optional<at::Tensor> fast_gelu(Layer* layer, const at::Tensor& x, bool tanh);
std::optional<at::Tensor> fast_silu(Layer* layer, const at::Tensor& x);
std::optional<at::Tensor> fast_softmax(Layer* layer, const at::Tensor& x, int64_t dim,
                                       std::optional<at::ScalarType> dtype, bool log);
std::optional<at::Tensor> fast_layer_norm(Layer* layer, const at::Tensor& x, c10::SymIntArrayRef shape,
                                          const std::optional<at::Tensor>& weight,
                                          const std::optional<at::Tensor>& bias, double eps);

}  // namespace hpqf::engine
