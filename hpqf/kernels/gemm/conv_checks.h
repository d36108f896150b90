#pragma once
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::kernels {

// Error for a shape without a meaning and a block size not listed.
void check(const ConvShape& shape, const GemmBlocks& blocks);

}  // namespace hpqf::kernels
