// torch's own low-precision GEMMs: what a plan runs through on CUDA, ROCm and XPU, and on CPUs where they pay.
#pragma once
#include "hpqf/engine/gemm.h"

namespace hpqf::engine {

// Operands cast to bf16/fp16, torch's op on them, result cast back; autograd differentiates the casts.
at::Tensor run_cast(const GemmCall& call, const at::Tensor& a, Format format);

// A linear layer through _scaled_mm (fp8, a scale a tensor) or _int_mm (int8, a scale a row or a tensor), forward,
// dgrad and wgrad: each product encodes both operands along its own contraction. Products whose sizes or formats torch
// does not take run on rounded operands instead.
at::Tensor run_scaled(const GemmCall& call, const at::Tensor& a, const LayerRef& layer, const OpRecord& record);

}  // namespace hpqf::engine
