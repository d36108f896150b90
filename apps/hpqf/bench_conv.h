// hpqf bench conv: the integer convolution against torch's fp32 in its faster layout, and bf16, product by product.
#pragma once
#include "apps/hpqf/bench_kernel.h"

namespace hpqf::app {

int bench_conv(const BenchKernelConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
