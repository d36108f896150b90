// What the benchmarks of single kernels, gemm and conv, have in common.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "apps/hpqf/bench_timing.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::app {

struct KernelFormat {
  std::string name;  // "int8", "int12[1x128]"
  kernels::GemmBlocks blocks;
};

// Error naming the option that cannot be followed: --formats, --path, --batch-size.
KernelFormat read_kernel_format(const std::string& text);
const kernels::GemmPath* read_kernel_path(const std::string& name);  // "": the best that runs here
void check_model_options(const std::string& model, int64_t batch_size);

constexpr double kSlowestBf16 = 20;  // times fp32's time: above that, bf16 is left out
// How many times as long as fp32 bf16 takes, by one call each.
double times_as_long(const std::function<void()>& fp32, const std::function<void()>& bf16, const BenchClock& clock);
std::string bf16_note(const std::string& what, const std::string& shape, double slower);

}  // namespace hpqf::app
