#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {
namespace {

bool always() { return true; }
#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512_vnni() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#endif

constexpr GemmPath kPaths[] = {
#if defined(__x86_64__)
    {"avx512-vnni", "AVX-512 F, BW, VL and VNNI", has_avx512_vnni, Format::int8, &kAvx512VnniKernels},
    {"avx2", "AVX2 and FMA", has_avx2, Format::int7, &kAvx2Kernels},
#endif
    {"reference", "any CPU", always, Format::int7, &kReferenceKernels},
};

}  // namespace

std::span<const GemmPath> gemm_paths() { return kPaths; }

const GemmPath* best_gemm_path() {
  static const GemmPath* const best = []() -> const GemmPath* {
    for (const GemmPath& path : kPaths)
      if (path.kernels != &kReferenceKernels && path.runnable()) return &path;
    return nullptr;
  }();
  return best;
}

}  // namespace hpqf::kernels
