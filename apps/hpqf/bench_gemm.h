// hpqf bench gemm: the integer GEMM against torch's fp32 and bf16, product by product.
#pragma once
#include "apps/hpqf/bench_kernel.h"

namespace hpqf::app {

int bench_gemm(const BenchKernelConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
