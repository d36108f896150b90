// Which sums are squared: the independent terms of the Fisher information.
//
// A term of the loss is one sample, or one token where each token has a label. Everything one term touches is summed
// before it is squared: all positions of a convolution meet the same weight error, so their parts add coherently
// (dropping these cross terms costs .2 to .3 of rank correlation on ResNet-20). Different terms draw their labels
// independently, so their cross terms are zero on average and only add variance.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hpqf::engine::sensitivity {

// Dimensions of `sizes` that count terms, as a bit mask, for a loss whose target has `target` sizes: the leading
// dimensions with as many elements as there are targets; else one dimension of that size; else the dimensions that
// match those of the target in order or reversed ([B, heads, T, d] for targets [B, T]); else the first dimension. A
// scalar has none.
uint64_t term_dimensions(at::IntArrayRef sizes, at::IntArrayRef target);

// <gradient, change> within each term: 1-d, fp64, on the CPU.
at::Tensor term_sums(const at::Tensor& gradient, const at::Tensor& change, at::IntArrayRef target);

}  // namespace hpqf::engine::sensitivity
