// What the tests of the integer GEMM and of the integer convolution share: the paths, and operands for them.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {

inline std::vector<float> normal(int64_t n, unsigned seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> d(0, scale);
  std::vector<float> x(static_cast<size_t>(n));
  for (auto& v : x) v = d(random);
  return x;
}

inline const GemmPath& reference() { return gemm_paths().back(); }
inline std::vector<GemmPath> runnable_paths() {
  std::vector<GemmPath> paths;
  for (const auto& path : gemm_paths())
    if (path.runnable()) paths.push_back(path);
  return paths;
}
// The reference under the code rules of `path`.
inline GemmPath twin(const GemmPath& path) {
  return path.a_format == Format::int7
             ? reference()
             : GemmPath{"reference, full int8", "", nullptr, Format::int8, &kReferenceFullKernels};
}

// Pieces of three, as a pool of many threads would cut the work.
inline void in_pieces(int64_t begin, int64_t end, int64_t, const base::RangeBody& body) {
  for (int64_t i = begin; i < end; i += 3) body(i, std::min(i + 3, end));
}

}  // namespace hpqf::kernels
