// A GEMM whose two backward products run in different formats, or in fp32 while the forward runs low.
#pragma once
#include "hpqf/engine/gemm.h"

namespace hpqf::engine {

at::Tensor run_split(const GemmCall& call, const at::Tensor& a, const LayerRef& layer, const OpRecord& record,
                     BackwardFormulas formulas);

}  // namespace hpqf::engine
