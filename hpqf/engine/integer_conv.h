// Convolutions on our block-scaled integer kernels: forward, input gradient and weight gradient, CPU.
#pragma once
#include "hpqf/engine/gemm.h"

namespace hpqf::engine {

// `call.conv` is set. The result has the memory format torch would give it: channels-last when an operand lies so.
at::Tensor run_integer_conv(const GemmCall& call, const at::Tensor& x, const LayerRef& layer, const OpRecord& record);

}  // namespace hpqf::engine
