// One direction of a convolution as a correlation: which elements of the image that is read meet in which element of
// the image that is written.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>

namespace hpqf::kernels {

// Output origin + spacing * g, for g in [0, grid), is the sum over taps j of the kernel element first + every * j times
// the input step * g + offset + advance * j. Inputs outside [0, in) are zeros.
struct Axis {
  int64_t in, out;
  int64_t grid, step, origin, spacing;
  int64_t taps, first, every, offset, advance;

  int64_t lowest() const { return offset + std::min<int64_t>(0, advance * (taps - 1)); }
  int64_t highest() const { return step * (grid - 1) + offset + std::max<int64_t>(0, advance * (taps - 1)); }
  bool empty() const { return grid == 0 || taps == 0; }
};

inline Axis forward_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return {in, out, out, stride, 0, 1, kernel, 0, 1, -padding, dilation};
}

// The inputs `residue` modulo the stride: i = o * stride - padding + dilation * tap, solved for o. The taps for which o
// is whole are every (stride / gcd(stride, dilation))-th. `in` and `out` are those of the gradient: read dy, write dx.
inline Axis gradient_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                          int64_t residue) {
  const int64_t grid = residue < out ? (out - residue + stride - 1) / stride : 0;
  const int64_t every = stride / std::gcd(stride, dilation);
  for (int64_t tap = 0; tap < std::min(every, kernel); ++tap) {
    const int64_t o = residue + padding - dilation * tap;
    if (o % stride == 0)
      return {in,
              out,
              grid,
              1,
              residue,
              stride,
              (kernel - tap + every - 1) / every,
              tap,
              every,
              o / stride,
              -dilation * every / stride};
  }
  return {in, out, grid, 1, residue, stride, 0, 0, 1, 0, 0};
}

}  // namespace hpqf::kernels
