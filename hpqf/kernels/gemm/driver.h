// Blocking and threads around the inner functions of a path.
#pragma once
#include <functional>

#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {

inline constexpr int64_t kSerialWork = 1 << 18;  // multiply-adds (about 3 us) not worth waking threads

// Packs panels first .. last - 1, blocks b0 .. b1 - 1 of A; see PathKernels::pack_a. `first` is a multiple of 8, the
// panels of one strip. Returns the blocks with a NaN or infinity.
using PackChunk = std::function<int64_t(int64_t first, int64_t last, int64_t b0, int64_t b1, char* out)>;

// The product with A from anywhere (a matrix, the pixels of a convolution).
int64_t multiply(const PathKernels& path, int64_t m, const PackChunk& pack_a, const void* packed_b, int64_t n,
                 const BlockGrid& grid, const GemmResult& result);

}  // namespace hpqf::kernels
