#pragma once
#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {

// For every x86 path: packing is bound by memory more than by the width of vectors. See PathKernels.
int64_t pack_a_avx2(const PackJob& job, int64_t first, int64_t last, int64_t b0, int64_t b1, char* out);
int64_t pack_b_avx2(const PackJob& job, int64_t first, int64_t last, char* out);

}  // namespace hpqf::kernels
