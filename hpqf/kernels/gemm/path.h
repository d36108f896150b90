// The inner functions that differ by instruction set; blocking and threads are written once, in driver.cc.
#pragma once
#include "hpqf/kernels/gemm/conv_kernels.h"
#include "hpqf/kernels/gemm/layout.h"

namespace hpqf::kernels {

struct PackJob {
  MatrixView from;
  BlockGrid blocks;
  CodeRule rule;
  PackRounding rounding;
};

struct TileJob {
  const char* a;  // first block of the first panel
  const char* b;
  int64_t a_panel, b_panel;  // bytes from panel to panel
  int64_t a_block, b_block;  // bytes from block to block
  int64_t blocks;            // count; all of `k` elements but the last
  int64_t k, k_last;         // padded
  const float* init;         // C starts from here: C itself, the bias (row stride 0) or zeros
  int64_t init_stride;
  float* c;
  int64_t c_stride;
};

inline constexpr int kMostPanelsA = 4, kMostPanelsB = 2;  // of a tile, on any path

struct PathKernels {
  CodeRule a8, b8, a12, b12;
  int panels_a, panels_b;  // most panels one tile takes
  // Panels first .. last - 1, blocks b0 .. b1 - 1, to out[panel][block]. Returns the blocks with a NaN or infinity.
  int64_t (*pack_a)(const PackJob&, int64_t first, int64_t last, int64_t b0, int64_t b1, char* out);
  // All blocks of panels first .. last - 1; `out` is that of the whole operand.
  int64_t (*pack_b)(const PackJob&, int64_t first, int64_t last, char* out);
  // c (+)= tile of na x nb panels over all blocks of the job. c and init have room for whole panels.
  void (*tile8)(const TileJob&, int na, int nb);
  void (*tile12)(const TileJob&, int na, int nb);
  const ConvKernels* conv;
};

// The rules of AVX2, and those of CPUs that multiply u8 x s8 into 32 bits.
extern const PathKernels kReferenceKernels;
HPQF_API extern const PathKernels kReferenceFullKernels;
#if defined(__x86_64__)
extern const PathKernels kAvx2Kernels, kAvx512VnniKernels;
#endif

}  // namespace hpqf::kernels
