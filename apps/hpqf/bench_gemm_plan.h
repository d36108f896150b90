// What `hpqf bench gemm` was asked for, read and checked.
#pragma once
#include <string>
#include <vector>

#include "apps/hpqf/bench_gemm.h"
#include "apps/hpqf/bench_gemm_case.h"
#include "apps/hpqf/bench_kernel.h"

namespace hpqf::app {

struct GemmBenchPlan {
  std::vector<KernelFormat> formats;
  std::vector<LinearShape> shapes;
  std::vector<const GemmForm*> forms;
  const kernels::GemmPath* path = nullptr;
};

// Error naming the option that cannot be followed.
GemmBenchPlan read_gemm_plan(const BenchGemmConfig& config);

}  // namespace hpqf::app
