// hpqf bench gemm: the integer GEMM against torch's fp32 and bf16, product by product.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/hpqf/bench_options.h"

namespace hpqf::app {

struct BenchGemmConfig {
  std::vector<std::string> formats{"int8", "int12"}, forms{"nt", "nn", "tn"};
  std::vector<std::string> shapes{"2048x512x512", "2048x512x2048", "2048x2048x512", "2048x768x768"};
  std::string model;       // instead of shapes
  int64_t batch_size = 0;  // of the model; 0: its default
  std::string path;        // one of kernels::gemm_paths(); "": the best that runs
  BenchOptions common;
};

int bench_gemm(const BenchGemmConfig& config);  // Error before anything is measured

}  // namespace hpqf::app
