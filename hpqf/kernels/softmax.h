// softmax and log_softmax over the last axis, forward and backward, fp32. Three passes over a row, which lies in the
// level-1 or level-2 cache after the first; the cost is that of one exp an element.
#pragma once
#include <cstdint>
#include <span>

#include "hpqf/base/export.h"

namespace hpqf::kernels {

// y = softmax(scale x) along each row: exp(scale x - m) / sum, with m the largest scale x of the row. With `log` its
// logarithm: (scale x - m) - log(sum). All arrays are contiguous [rows][cols]. Nothing happens where a size is 0.
struct SoftmaxForward {
  int64_t rows = 0, cols = 0;
  bool log = false;
  float scale = 1.0f;
  const float* x = nullptr;
  float* y = nullptr;  // may be x
};

// softmax: dx = scale y (dy - sum(dy y)); log_softmax: dx = scale (dy - exp(y) sum(dy)).
struct SoftmaxBackward {
  int64_t rows = 0, cols = 0;
  bool log = false;
  float scale = 1.0f;
  const float* y = nullptr;
  const float* dy = nullptr;
  float* dx = nullptr;  // may be dy or y
};

// Run on the best implementation for this CPU, rows split by base::parallel_for (from 8192 elements on). A row's result
// does not depend on the split.
//
// Largest error against fp64, in units of 2^-24. The roundings of v = scale x and of v - m enter with |v| + |v - m|, as
// in torch; none without a scale for v. Beyond that softmax errs by less than 6 relative, log_softmax by less than 4 +
// |y|; dx by less than 8 of the magnitudes of its terms. Asserted in the test for up to 3001 cols. As in torch: NaN,
// +inf or nothing but -inf in a row make the whole row NaN; a single -inf gives exactly 0 (-inf with `log`). exp(scale
// x - m) under the smallest normal number counts as 0.
HPQF_API void softmax(const SoftmaxForward& a);
HPQF_API void softmax(const SoftmaxBackward& a);

// The implementations, best first. Each function takes rows [first, last).
struct SoftmaxImplementation {
  const char* name;    // "avx512", "avx2", "ref"
  bool (*runnable)();  // may run on this CPU
  void (*forward)(const SoftmaxForward&, int64_t first, int64_t last);
  void (*backward)(const SoftmaxBackward&, int64_t first, int64_t last);
};
HPQF_API std::span<const SoftmaxImplementation> softmax_implementations();

}  // namespace hpqf::kernels
