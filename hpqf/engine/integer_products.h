// The three products of a layer with a weight, on the integer GEMM: what linear and recurrent layers share.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "hpqf/engine/layer.h"
#include "hpqf/engine/weight_cache.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::engine {

// "" when this CPU multiplies operands in `format` natively as integers; else why not.
std::string integer_refusal(const BlockFormat& format);

// The format in which the operand that is stored unsigned really runs: int7 for int8 on CPUs without VNNI.
BlockFormat unsigned_side(BlockFormat format);
std::string_view integer_reason(const BlockFormat& format);  // path and formats in words; lives as long as the process

// Do layers of this runtime with weights in `format` run on the integer GEMM? Not when another implementation is
// forced.
bool integer_gemm_serves(const RuntimeState& runtime, const BlockFormat& format);

struct IntegerOutput {
  float* data;
  int64_t stride;
  bool accumulate = false;
  const float* bias = nullptr;
};

// w [rows, k] packed as operand B: kept until the weight changes.
at::Tensor packed_weight(const at::Tensor& w, CopyUse use, const BlockFormat& format, const Layer& layer);

// out [rows, n] (+)= x [rows, k] * packed w [n, k]^T
void integer_forward(const at::Tensor& x, const at::Tensor& packed, int64_t n, const BlockFormat& format,
                     const IntegerOutput& out, const Layer& layer);
// out [rows, k] (+)= g [rows, n] * w [n, k]; `packed` is that of w^T. Gradients round stochastically, from a seed that
// is a function of the gradient itself: a resumed or recomputed step draws the same numbers, and there is no state to
// keep.
void integer_input_gradient(const at::Tensor& g, const at::Tensor& packed, int64_t k, const BlockFormat& format,
                            const IntegerOutput& out, const Layer& layer);
// g [rows, n]^T * x [rows, k]: the contraction runs over the rows of the batch.
at::Tensor integer_weight_gradient(const at::Tensor& g, const at::Tensor& x, const BlockFormat& format,
                                   const Layer& layer);

// The seed of a gradient's stochastic rounding: a hash of its content and of the layer's name. `g` is dense.
uint64_t gradient_seed(const at::Tensor& g, const Layer& layer, uint64_t product);
// Tells the layer's sink how many elements of `t` are not finite, once a kernel saw a bad block.
void report_bad_blocks(int64_t bad_blocks, const at::Tensor& t, const BlockFormat& format, const Layer& layer,
                       plan::Role role);
kernels::GemmBlocks blocks_of(const BlockFormat& format);

}  // namespace hpqf::engine
