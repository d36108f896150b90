// The families of intercepted ops, and what their kernels share.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <string>

#include "hpqf/engine/scope.h"

namespace hpqf::engine {

void register_gemm_ops(torch::Library& aten);         // linear, addmm, matmul, mm, bmm, baddbmm, attention
void register_lookup_ops(torch::Library& aten);       // embedding, embedding_bag
void register_conv_ops(torch::Library& aten);         // convolutions, plain and transposed
void register_rnn_ops(torch::Library& aten);          // lstm, gru, rnn
void register_rule_ops(torch::Library& aten);         // softmax, norms, losses: fp32 by rule
void register_elementwise_ops(torch::Library& aten);  // gelu, silu

// Names of ops the engine counts ("aten::linear"), for the census of those it does not.
void note_counted_op(std::string name);

// OP is one of ATen's own at::_ops structs: name, overload and signature come from there.
template <class OP, class F>
void intercept(torch::Library& aten, F* kernel) {
  const std::string full = *OP::overload_name ? std::string(OP::name) + "." + OP::overload_name : std::string(OP::name);
  note_counted_op(OP::name);
  aten.impl(full.c_str(), torch::CppFunction(kernel));
}

}  // namespace hpqf::engine
