// LayerNorm over the last axis, forward and backward, fp32, as torch.native_layer_norm defines it. Bound by memory once
// the arrays do not fit a cache: forward reads x and writes y once, backward reads x and dy and writes dx once.
#pragma once
#include <cstdint>
#include <span>

#include "hpqf/base/export.h"

namespace hpqf::kernels {

// y = (x - mean) rstd weight + bias, with mean and biased variance of each row and rstd = 1 / sqrt(variance + eps).
// x and y are contiguous [rows][cols]. Nothing happens where a size is 0.
struct LayerNormForward {
  int64_t rows = 0, cols = 0;
  double eps = 1e-5;
  const float* x = nullptr;
  const float* weight = nullptr;  // [cols]; null: 1
  const float* bias = nullptr;    // [cols]; null: 0
  float* y = nullptr;             // may be x
  float* mean = nullptr;          // [rows]
  float* rstd = nullptr;          // [rows]
};

// With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)) along each row, dweight = sum of
// dy n over the rows, dbias = sum of dy.
struct LayerNormBackward {
  int64_t rows = 0, cols = 0;
  const float* x = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  const float* weight = nullptr;  // null: 1
  const float* dy = nullptr;
  float* dx = nullptr;       // may be dy or x; null: not wanted
  float* dweight = nullptr;  // [cols]; null: not wanted
  float* dbias = nullptr;    // [cols]; null: not wanted
  float* scratch = nullptr;  // layer_norm_scratch floats; null if neither dweight nor dbias is wanted
};

// At most 64 cols.
HPQF_API int64_t layer_norm_scratch(int64_t rows, int64_t cols);

// Run on the best implementation for this CPU, rows split by base::parallel_for (from 16384 elements on). dweight and
// dbias are summed in at most 32 pieces of rows, then over the pieces: an order that depends on the shape alone. No
// result depends on the number of threads.
//
// Largest error against fp64, in units of 2^-24, measured for 7 to 50000 cols: y 4.3 of |n weight| + |weight| + |bias|,
// mean 1.2 of the mean of |x|, rstd 4.4 relative; dx 3.1 of the terms' magnitudes; dweight and dbias 1.6 of the sums of
// magnitudes. It does not grow with the distance of a row from 0: for x around 100 with a spread of 1 y errs by 2.3,
// that of torch 2.13 by 213, around 10000 by 4.2 and 27000.
// NaN or infinity in a row of x makes y and rstd NaN, as in torch. The sums of |x| and of (x - mean)^2 over a row must
// stay under 3e38.
HPQF_API void layer_norm(const LayerNormForward& a);
HPQF_API void layer_norm(const LayerNormBackward& a);

// The rows [first, last) of a backward pass, and where their sums go.
struct LayerNormPiece {
  int64_t first, last;
  float* dweight;  // [cols], overwritten; null: neither sum is wanted
  float* dbias;
};

// The implementations, best first.
struct LayerNormImplementation {
  const char* name;    // "avx512", "avx2", "ref"
  bool (*runnable)();  // may run on this CPU
  void (*forward)(const LayerNormForward&, int64_t first, int64_t last);
  void (*backward)(const LayerNormBackward&, const LayerNormPiece&);
};
HPQF_API std::span<const LayerNormImplementation> layer_norm_implementations();

}  // namespace hpqf::kernels
