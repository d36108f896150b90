// GEMM on block-scaled integers: C[M,N] = A[M,K] * B[N,K]^T from fp32 operands, which are quantised while they are
// packed, into fp32. What makes low precision faster than fp32 on CPUs.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"

namespace hpqf::kernels {

// The two grids of codes. Scales are fp32, one for each row and `block` consecutive k.
enum class Grid : uint8_t {
  int8,   // 8-bit lanes. A: int8 where the CPU multiplies u8 x s8 into 32 bits (VNNI), int7 (codes up to 63) on AVX2,
          // whose products meet in 16 bits. B: int8; on AVX2 its scale also bounds groups of four codes (layout.h).
  int12,  // codes up to 2047 in 16-bit lanes, both sides
};

struct GemmBlocks {
  Grid grid = Grid::int8;
  int block = 64;  // 32, 64, 128 or 256
  bool operator==(const GemmBlocks&) const = default;
};

// Rows x K of fp32. Element (r, k) is data[r * stride + k], or data[k * stride + r] when `k_major`.
// An NT product has two row-major operands, NN a k-major B, TN both k-major.
struct MatrixView {
  const float* data = nullptr;
  int64_t rows = 0, k = 0;
  int64_t stride = 0;  // elements
  bool k_major = false;
};

// Nearest (ties to even), or stochastic: floor(x + u) with 16-bit u that are a pure function of the seed and the
// element's place, so that a result does not depend on threads.
struct PackRounding {
  Rounding rounding = Rounding::nearest_even;
  uint64_t seed = 0;
};

// One way to run it; the list holds them best first.
struct GemmPath {
  const char* name;   // "avx512-vnni", "avx2", ...: as reports print it
  const char* needs;  // instruction sets, in words
  bool (*runnable)();
  Format a_format;  // what int8 becomes on the A side: int8 or int7
  const struct PathKernels* kernels;
};
HPQF_API std::span<const GemmPath> gemm_paths();
HPQF_API const GemmPath* best_gemm_path();  // null: this CPU has none (the reference is not meant for work)

// Bytes of an operand packed for the B side, 64-byte aligned memory. Independent of the path.
HPQF_API int64_t packed_bytes(int64_t rows, int64_t k, const GemmBlocks& blocks);

// Quantises and packs B into `out` (64-byte aligned, packed_bytes). Returns the number of blocks with a NaN or
// infinity: their scale is NaN, and so is everything multiplied by it. Worth keeping for weights: one packing serves
// every product until the next optimizer step.
HPQF_API int64_t pack_b(const GemmPath& path, const MatrixView& b, const GemmBlocks& blocks,
                        const PackRounding& rounding, void* out);

struct GemmResult {
  float* c = nullptr;  // [M, N]
  int64_t stride = 0;
  bool accumulate = false;      // C += instead of C =
  const float* bias = nullptr;  // [N], added once; not with accumulate
};

// A is quantised and packed chunk by chunk. Returns the number of blocks of A with a NaN or infinity. The same bits for
// any number of threads and, on the int12 grid, on every path. Error for operands that do not fit together, a block
// size not listed, and a C that overlaps A. Allocates nothing once the threads' scratch has grown to size.
HPQF_API int64_t gemm(const GemmPath& path, const MatrixView& a, const PackRounding& rounding, const void* packed_b,
                      int64_t n, const GemmBlocks& blocks, const GemmResult& result);

// Both operands from fp32.
HPQF_API int64_t gemm(const GemmPath& path, const MatrixView& a, const PackRounding& rounding_a, const MatrixView& b,
                      const PackRounding& rounding_b, const GemmBlocks& blocks, const GemmResult& result);

}  // namespace hpqf::kernels
