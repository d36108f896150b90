// The definition of what convolutions do to packed codes, a word at a time.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "hpqf/kernels/gemm/conv_kernels.h"

namespace hpqf::kernels {
namespace {

void spread(const RecordLayout& layout, const char* panel, char* const* record) {
  for (int64_t i = 0; i < kPanelB; ++i) {
    std::memset(record[i], 0, size_t(layout.header()));
    for (int64_t b = 0; b < layout.blocks; ++b) {
      const char* from = panel + b * layout.panel_block();
      std::memcpy(record[i] + 8 * b, from + 4 * i, 4);
      if (layout.grid == Grid::int8) std::memcpy(record[i] + 8 * b + 4, from + 64 + 4 * i, 4);
      char* codes = record[i] + layout.header() + b * layout.code_bytes();
      for (int64_t word = 0; word < layout.code_bytes() / 4; ++word)
        std::memcpy(codes + 4 * word, from + b_header(layout.grid) + 64 * word + 4 * i, 4);
    }
  }
}

void gather(const RecordLayout& layout, const char* const* record, int64_t distance, int64_t first, int64_t last,
            char* panel) {
  for (int64_t b = first; b < last; ++b, panel += layout.panel_block())
    for (int64_t i = 0; i < kPanelB; ++i) {
      const char* from = record[i] + distance;
      std::memcpy(panel + 4 * i, from + 8 * b, 4);
      if (layout.grid == Grid::int8) std::memcpy(panel + 64 + 4 * i, from + 8 * b + 4, 4);
      const char* codes = from + layout.header() + b * layout.code_bytes();
      for (int64_t word = 0; word < layout.code_bytes() / 4; ++word)
        std::memcpy(panel + b_header(layout.grid) + 64 * word + 4 * i, codes + 4 * word, 4);
    }
}

void store_columns(const float* from, int64_t stride, int64_t rows, float* const* to) {
  for (int64_t i = 0; i < kPanelB; ++i)
    for (int64_t r = 0; r < rows; ++r) to[i][r] = from[r * stride + i];
}

uint32_t largest(const float* from, int64_t n) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::bit_cast<uint32_t>(from[i]) & 0x7fffffffu);
  return most;
}

void codes(const CodeJob& job, const float* from, int64_t n, int64_t k, char* out) {
  for (int64_t i = 0; i < n; ++i) {
    int code = int(std::nearbyint(from[i] * job.inverse));
    if (job.stochastic) code = (code + int(random16(job.key, k + i))) >> 16;
    if (job.grid == Grid::int8) {
      out[i] = char(code + job.offset);
    } else {
      const auto lane = int16_t(code);
      std::memcpy(out + 2 * i, &lane, 2);
    }
  }
}

void every_second(Grid grid, const char* from, int64_t n, char* out) {
  const int64_t lane = lane_bytes(grid);
  for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * lane, from + 2 * i * lane, size_t(lane));
}

void interleave(const char* const* row, int64_t bytes, char* out) {
  for (int64_t i = 0; i < bytes; i += 4)
    for (int r = 0; r < kPanelA; ++r, out += 4) std::memcpy(out, row[r] + i, 4);
}

}  // namespace

const ConvKernels kReferenceConvKernels = {.spread = spread,
                                           .gather = gather,
                                           .store_columns = store_columns,
                                           .largest = largest,
                                           .codes = codes,
                                           .every_second = every_second,
                                           .interleave = interleave};

}  // namespace hpqf::kernels
