// The portable loops under the flags of AVX2: four fp64 or eight 32-bit lanes a register.
#include "hpqf/kernels/tensor_stats_loops.h"

namespace hpqf::kernels {

extern const TensorStatsImplementation kTensorStatsAvx2;
const TensorStatsImplementation kTensorStatsAvx2{
    "avx2", [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }, &stats_of_piece};

}  // namespace hpqf::kernels
