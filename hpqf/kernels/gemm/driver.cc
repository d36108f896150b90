// The order of Goto and van de Geijn ("Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34(3), 2008): a
// chunk of A, packed just before its use, stays in the second-level cache while all of B passes by panels through the
// first. Every element of C sums its blocks of k in ascending order whatever the chunks and threads are.
#include "hpqf/kernels/gemm/driver.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

constexpr float kZeros[kMostPanelsB * kPanelB] = {};
constexpr int64_t kUnit = 8;                // panels of A in a unit of work: one strip of a k-major operand
constexpr int64_t kChunkBytes = 256 << 10;  // of A: half of a 512 KiB second-level cache
constexpr int64_t kPanelBytes = 16 << 10;   // of B: half of a 32 KiB first-level cache

struct Work {
  const PathKernels& path;
  const PackChunk& pack_a;
  const char* b;
  int64_t m, n;
  const BlockGrid& grid;
  const GemmResult& result;

  // Panels i0 .. i1 of A by panels j0 .. j1 of B.
  int64_t run(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
    const int64_t line = lane_bytes(grid.grid) * grid.block;  // bytes of a block of one row
    const int64_t blocks = std::clamp<int64_t>(kPanelBytes / (line * kPanelB), 1, grid.count());
    const int64_t panels = std::max<int64_t>(kUnit, kChunkBytes / (blocks * line * kPanelA) / kUnit * kUnit);
    int64_t bad = 0;
    for (int64_t b0 = 0; b0 < grid.count(); b0 += blocks) {
      const int64_t b1 = std::min(b0 + blocks, grid.count());
      for (int64_t i = i0; i < i1; i += panels) {
        const int64_t last = std::min(i + panels, i1);
        char* a = scratch(Scratch::packed_a, (last - i) * grid.a_panel_bytes(b0, b1));
        bad += pack_a(i, last, b0, b1, a);
        chunk(a, i, last, j0, j1, b0, b1);
      }
    }
    return bad;
  }

  void chunk(const char* a, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t b0, int64_t b1) const {
    TileJob job{};
    job.a_panel = grid.a_panel_bytes(b0, b1);
    job.b_panel = grid.b_panel_bytes();
    job.a_block = grid.a_bytes(grid.block);
    job.b_block = grid.b_bytes(grid.block);
    job.blocks = b1 - b0;
    job.k = grid.block;
    job.k_last = grid.padded(b1 - 1);
    const auto tile = grid.grid == Grid::int8 ? path.tile8 : path.tile12;
    const int64_t panel_bytes = job.blocks * job.b_block;
    for (int64_t j = j0; j < j1; j += path.panels_b) {
      const int nb = int(std::min<int64_t>(path.panels_b, j1 - j));
      job.b = b + j * job.b_panel + b0 * job.b_block;
      // The next panel comes from the third-level cache: ask for it a line at a time while this one is in use.
      const char* next = j + nb < j1 ? job.b + nb * job.b_panel : job.b;
      const int64_t lines = divide_up(nb * panel_bytes, 64), lines_each = divide_up(lines * path.panels_a, i1 - i0);
      int64_t line = 0;
      for (int64_t i = i0; i < i1; i += path.panels_a) {
        const int na = int(std::min<int64_t>(path.panels_a, i1 - i));
        for (const int64_t end = std::min(lines, line + lines_each); line < end; ++line)
          __builtin_prefetch(next + line * 64, 0, 2);
        job.a = a + (i - i0) * job.a_panel;
        place(tile, job, i * kPanelA, na, j * kPanelB, nb, b0 == 0);
      }
    }
  }

  // One tile at its place in C, through a buffer where it reaches over the edge.
  void place(void (*tile)(const TileJob&, int, int), TileJob& job, int64_t row, int na, int64_t column, int nb,
             bool first) const {
    const int64_t rows = std::min<int64_t>(m - row, na * kPanelA),
                  columns = std::min<int64_t>(n - column, nb * kPanelB);
    float* c = result.c + row * result.stride + column;
    const bool from_c = !first || result.accumulate;
    const float* bias = result.bias ? result.bias + column : nullptr;
    if (rows == na * kPanelA && columns == nb * kPanelB) {
      for (int r = 0; r < 4 && row + rows + r < m; ++r) __builtin_prefetch(c + (rows + r) * result.stride, 1, 3);
      job.c = c, job.c_stride = result.stride;
      job.init = from_c ? c : bias ? bias : kZeros;
      job.init_stride = from_c ? result.stride : 0;
      tile(job, na, nb);
      return;
    }
    alignas(64) float edge[kMostPanelsA * kPanelA * kMostPanelsB * kPanelB];
    const int64_t wide = nb * kPanelB;
    for (int64_t r = 0; r < na * kPanelA; ++r)
      for (int64_t x = 0; x < wide; ++x) {
        const bool inside = r < rows && x < columns;
        edge[r * wide + x] = !inside ? 0 : from_c ? c[r * result.stride + x] : bias ? bias[x] : 0;
      }
    job.c = edge, job.c_stride = wide, job.init = edge, job.init_stride = wide;
    tile(job, na, nb);
    for (int64_t r = 0; r < rows; ++r) std::memcpy(c + r * result.stride, edge + r * wide, size_t(columns) * 4);
  }
};

}  // namespace

int64_t multiply(const PathKernels& path, int64_t m, const PackChunk& pack_a, const void* packed_b, int64_t n,
                 const BlockGrid& grid, const GemmResult& result) {
  if (m == 0 || n == 0) return 0;
  if (grid.k == 0) {
    if (!result.accumulate)
      for (int64_t r = 0; r < m; ++r)
        for (int64_t x = 0; x < n; ++x) result.c[r * result.stride + x] = result.bias ? result.bias[x] : 0;
    return 0;
  }
  const Work work{path, pack_a, static_cast<const char*>(packed_b), m, n, grid, result};
  const int64_t panels_a = divide_up(m, kPanelA), panels_b = divide_up(n, kPanelB);
  if (m * n <= kSerialWork / grid.k) return work.run(0, panels_a, 0, panels_b);
  std::atomic<int64_t> bad{0};
  const int64_t units = divide_up(panels_a, kUnit);
  if (units >= 4) {
    auto body = [&](int64_t first, int64_t last) {
      bad += work.run(first * kUnit, std::min(last * kUnit, panels_a), 0, panels_b);
    };
    base::parallel_for(0, units, 1, std::ref(body));  // std::function would copy what it captures to the heap
  } else {                                            // few rows: every thread packs them all and takes a part of B
    auto body = [&](int64_t first, int64_t last) {
      const int64_t here = work.run(0, panels_a, first, last);
      if (first == 0) bad += here;
    };
    base::parallel_for(0, panels_b, 2, std::ref(body));
  }
  return bad;
}

}  // namespace hpqf::kernels
