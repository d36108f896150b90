// Linear layers on our block-scaled integer GEMM: forward, input gradient and weight gradient, CPU.
#pragma once
#include <string>

#include "hpqf/engine/gemm.h"
#include "hpqf/engine/implementation.h"

namespace hpqf::engine {

// "" when the integer GEMM runs the problem; else why not.
std::string integer_refusal(const GemmProblem& problem);

// Sets what will really run: on CPUs without VNNI the operand that is multiplied as u8 has 7 bits. That is the input or
// the gradient of a linear layer, but the weight of a convolution.
void name_integer_formats(OpRecord& record, bool conv, const Layer& layer);

// Every product quantises both operands along its own contraction. Gradients round stochastically, from a seed that is
// a function of the gradient itself: a resumed or recomputed step draws the same numbers, and there is no state to
// keep.
at::Tensor run_integer(const GemmCall& call, const at::Tensor& a, const LayerRef& layer, const OpRecord& record);

}  // namespace hpqf::engine
