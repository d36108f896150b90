// hpqf bench conv: the integer convolution against torch's fp32 in its faster layout, and bf16, product by product.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/hpqf/bench_options.h"

namespace hpqf::app {

struct BenchConvConfig {
  std::vector<std::string> formats{"int8", "int12"}, forms{"forward", "dgrad", "wgrad"};
  std::vector<std::string> shapes{"16x64x56x64:k3", "16x128x28x128:k3",   "16x256x14x256:k3", "16x512x7x512:k3",
                                  "128x64x8x64:k3", "16x128x28x256:k3s2", "16x256x14x256:k1"};
  std::string model;       // instead of shapes
  int64_t batch_size = 0;  // of the model; 0: its default
  std::string path;        // one of kernels::gemm_paths(); "": the best that runs
  BenchOptions common;
};

int bench_conv(const BenchConvConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
