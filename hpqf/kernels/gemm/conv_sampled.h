#pragma once
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::kernels {

// A kernel of 1 x 1 without padding reads, of a strided convolution, one pixel in many. These are copied, in fp32, so
// that the others are not quantised: what remains has stride 1. Any other convolution is returned as it is.
struct Sampled {
  ConvShape shape;
  ConstImages x;
};
Sampled sampled(const ConvShape& shape, const ConstImages& x);

}  // namespace hpqf::kernels
