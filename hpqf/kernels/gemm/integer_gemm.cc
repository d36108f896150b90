#include "hpqf/kernels/gemm/integer_gemm.h"

#include <atomic>
#include <string>

#include "hpqf/base/error.h"
#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/driver.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

void check(const GemmBlocks& blocks) {
  for (int allowed : {32, 64, 128, 256})
    if (blocks.block == allowed) return;
  throw Error("integer GEMM with blocks of " + std::to_string(blocks.block), "blocks of 32, 64, 128 or 256",
              "choose one of these");
}

void check(const MatrixView& x, const char* what) {
  const int64_t line = x.k_major ? x.rows : x.k;
  if (x.rows < 0 || x.k < 0 || (x.stride < line && x.rows > 0 && x.k > 0))
    throw Error(std::string("integer GEMM: operand ") + what + " of " + std::to_string(x.rows) + " x " +
                    std::to_string(x.k) + " with stride " + std::to_string(x.stride),
                "sizes of 0 or more and a stride of at least one line", "pass the stride in elements");
}

int64_t elements(int64_t lines, int64_t line, int64_t stride) { return lines == 0 ? 0 : (lines - 1) * stride + line; }

void check(const GemmResult& result, const MatrixView& a, int64_t n) {
  if (result.stride < n)
    throw Error(
        "integer GEMM: result stride " + std::to_string(result.stride) + " for " + std::to_string(n) + " columns",
        "at least the number of columns", "pass the stride in elements");
  if (result.accumulate && result.bias)
    throw Error("integer GEMM: accumulate with a bias", "one of the two", "add the bias with the first product");
  const float *c = result.c, *c_end = c + elements(a.rows, n, result.stride);
  const float* a_end = a.data + (a.k_major ? elements(a.k, a.rows, a.stride) : elements(a.rows, a.k, a.stride));
  if (c < a_end && a.data < c_end)
    throw Error("integer GEMM: the result overlaps operand A", "separate memory", "write into another buffer");
}

}  // namespace

int64_t packed_bytes(int64_t rows, int64_t k, const GemmBlocks& blocks) {
  check(blocks);
  return divide_up(rows, kPanelB) * BlockGrid{blocks.grid, k, blocks.block}.b_panel_bytes();
}

int64_t pack_b(const GemmPath& path, const MatrixView& b, const GemmBlocks& blocks, const PackRounding& rounding,
               void* out) {
  check(blocks);
  check(b, "B");
  const PathKernels& kernels = *path.kernels;
  const PackJob job{
      b, {blocks.grid, b.k, blocks.block}, blocks.grid == Grid::int8 ? kernels.b8 : kernels.b12, rounding};
  std::atomic<int64_t> bad{0};
  // Pairs of panels: the strip of a k-major operand. A pair of 64 x 64 takes about 0.5 us.
  base::parallel_for(0, divide_up(b.rows, 2 * kPanelB), std::max<int64_t>(1, 16384 / std::max<int64_t>(1, 32 * b.k)),
                     [&](int64_t first, int64_t last) {
                       bad += kernels.pack_b(job, 2 * first, std::min(2 * last, divide_up(b.rows, kPanelB)),
                                             static_cast<char*>(out));
                     });
  return bad;
}

int64_t gemm(const GemmPath& path, const MatrixView& a, const PackRounding& rounding, const void* packed_b, int64_t n,
             const GemmBlocks& blocks, const GemmResult& result) {
  check(blocks);
  check(a, "A");
  if (a.rows == 0 || n == 0) return 0;
  check(result, a, n);
  const PathKernels& kernels = *path.kernels;
  const PackJob job{
      a, {blocks.grid, a.k, blocks.block}, blocks.grid == Grid::int8 ? kernels.a8 : kernels.a12, rounding};
  return multiply(
      kernels, a.rows,
      [&](int64_t first, int64_t last, int64_t b0, int64_t b1, char* out) {
        return kernels.pack_a(job, first, last, b0, b1, out);
      },
      packed_b, n, job.blocks, result);
}

int64_t gemm(const GemmPath& path, const MatrixView& a, const PackRounding& rounding_a, const MatrixView& b,
             const PackRounding& rounding_b, const GemmBlocks& blocks, const GemmResult& result) {
  if (a.k != b.k)
    throw Error("integer GEMM: operands with " + std::to_string(a.k) + " and " + std::to_string(b.k) + " k", "one k",
                "transpose the operand whose last axis is not the contraction");
  char* packed = scratch(Scratch::packed_b, packed_bytes(b.rows, b.k, blocks));
  const int64_t bad = pack_b(path, b, blocks, rounding_b, packed);
  return bad + gemm(path, a, rounding_a, packed, b.rows, blocks, result);
}

}  // namespace hpqf::kernels
