// Kernels of the element-wise ops that our own fp32 loops run faster than torch; see elementwise.h for when.
#include "hpqf/engine/elementwise.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/silu_ops.h>

#include "hpqf/engine/ops.h"

namespace hpqf::engine {
namespace {

using at::Tensor;

Tensor run_gelu(const Tensor& x, c10::string_view approximate) {
  OwnKeyOff off;
  if (auto y = fast_gelu(find_layer(), x, approximate == "tanh")) return *y;
  return at::_ops::gelu::call(x, approximate);
}

Tensor run_silu(const Tensor& x) {
  OwnKeyOff off;
  if (auto y = fast_silu(find_layer(), x)) return *y;
  return at::_ops::silu::call(x);
}

}  // namespace

void register_elementwise_ops(torch::Library& aten) {
  intercept<at::_ops::gelu>(aten, run_gelu);
  intercept<at::_ops::silu>(aten, run_silu);
}

}  // namespace hpqf::engine
