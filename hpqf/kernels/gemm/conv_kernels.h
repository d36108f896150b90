// The inner functions of convolutions that differ by instruction set. They move codes; rounding and products are those
// of PathKernels.
//
// A quantised pixel is a record: for every block of channels the pair {float scale; int32 start}, padded to 16 bytes in
// all, then the codes of all channels. Records of an image lie in rows with a border of zero records, so that a tap of
// the kernel is a constant distance in memory and a panel of im2col is 16 records transposed.
#pragma once
#include "hpqf/kernels/gemm/layout.h"

namespace hpqf::kernels {

struct RecordLayout {
  Grid grid;
  int64_t block, blocks;  // channels in a block, blocks in a record
  int64_t header() const { return divide_up(blocks, 2) * 16; }
  int64_t code_bytes() const { return block * lane_bytes(grid); }
  int64_t bytes() const { return header() + blocks * code_bytes(); }
  int64_t panel_block() const { return b_header(grid) + code_bytes() * kPanelB; }  // bytes of a block in a panel
};

// How a run of elements becomes codes.
struct CodeJob {
  Grid grid;
  int offset;  // added to 8-bit codes
  bool stochastic;
  float inverse;  // 1 / scale, times 2^16 if stochastic
  uint32_t key;   // of random16
};

struct ConvKernels {
  // The 16 rows of a packed panel of B become records.
  void (*spread)(const RecordLayout&, const char* panel, char* const* record);
  // Blocks first .. last - 1 of 16 records, each `distance` bytes on, become blocks of a packed panel of B.
  void (*gather)(const RecordLayout&, const char* const* record, int64_t distance, int64_t first, int64_t last,
                 char* panel);
  // to[column][row] = from[row * stride + column] for 16 columns.
  void (*store_columns)(const float* from, int64_t stride, int64_t rows, float* const* to);
  // Largest magnitude of n elements, as the bits of a float: above kLargestFinite if one is a NaN or infinity.
  uint32_t (*largest)(const float* from, int64_t n);
  // Codes of elements k .. k + n - 1 in order. May write up to 63 bytes beyond them.
  void (*codes)(const CodeJob&, const float* from, int64_t n, int64_t k, char* out);
  // n codes, every second one of `from`. May read and write up to 63 bytes beyond them.
  void (*every_second)(Grid, const char* from, int64_t n, char* out);
  // Words of 4 rows of codes, `bytes` (a multiple of 32) of each, to out[word][4]: a block of a packed panel of A.
  void (*interleave)(const char* const* row, int64_t bytes, char* out);
};

inline constexpr uint32_t kLargestFinite = 0x7f7fffff;

extern const ConvKernels kReferenceConvKernels;
#if defined(__x86_64__)
extern const ConvKernels kAvx2ConvKernels;
#endif

}  // namespace hpqf::kernels
