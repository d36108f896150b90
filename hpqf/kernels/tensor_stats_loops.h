// The two sweeps over one piece. Sixteen independent accumulators, so that the compiler vectorises sums whose order it
// may not change by itself; comparisons are made on the bits, where integers order magnitudes and NaN cannot hide.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "hpqf/kernels/tensor_stats.h"

namespace hpqf::kernels {
namespace {  // compiled once for each instruction set: no copy may be shared between them

constexpr int kLanes = 16;
constexpr int32_t kInfinity = 0x7f800000;
constexpr int64_t kBlock = 4096;  // values: 16 KiB, so that the second sweep reads from the first-level cache

struct BlockCounts {
  int32_t nan[kLanes] = {}, nonfinite[kLanes] = {}, zero[kLanes] = {}, under[kLanes] = {}, over[kLanes] = {};
  int32_t max[kLanes] = {};
  double sum[kLanes] = {};
};

inline void count_one(BlockCounts& c, int lane, float x, int32_t flush, int32_t largest) {
  const int32_t magnitude = std::bit_cast<int32_t>(x) & 0x7fffffff;
  const int32_t finite = -(magnitude < kInfinity);  // all ones or zero
  c.nan[lane] += magnitude > kInfinity;
  c.nonfinite[lane] += finite + 1;
  c.zero[lane] += magnitude == 0;
  c.under[lane] += (magnitude != 0) & (magnitude <= flush);
  c.over[lane] += (magnitude > largest) & (magnitude < kInfinity);
  c.max[lane] = std::max(c.max[lane], magnitude & finite);
  c.sum[lane] += static_cast<double>(std::bit_cast<float>(std::bit_cast<int32_t>(x) & finite));
}

struct BlockMoments {
  double m2[kLanes] = {}, m3[kLanes] = {}, m4[kLanes] = {};
};

inline void moment_one(BlockMoments& m, int lane, float x, double mean) {
  const int32_t bits = std::bit_cast<int32_t>(x);
  const bool finite = (bits & 0x7fffffff) < kInfinity;
  const double d = finite ? static_cast<double>(x) - mean : 0.0;
  const double d2 = d * d;
  m.m2[lane] += d2;
  m.m3[lane] += d2 * d;
  m.m4[lane] += d2 * d2;
}

template <class T>
T total(const T (&lanes)[kLanes]) {
  T sum = 0;
  for (T lane : lanes) sum += lane;
  return sum;
}

inline TensorStats stats_of_block(const float* x, int64_t n, int32_t flush, int32_t largest) {
  BlockCounts c;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) count_one(c, lane, x[i + lane], flush, largest);
  for (int64_t j = i; j < n; ++j) count_one(c, static_cast<int>(j - i), x[j], flush, largest);

  TensorStats s;
  s.count = n;
  s.nan = total(c.nan);
  s.infinite = total(c.nonfinite) - s.nan;
  s.zero = total(c.zero);
  s.underflow = total(c.under);
  s.overflow = total(c.over);
  s.max_abs = std::bit_cast<float>(*std::max_element(c.max, c.max + kLanes));
  if (s.finite() == 0) return s;
  s.mean = total(c.sum) / static_cast<double>(s.finite());

  BlockMoments m;
  i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) moment_one(m, lane, x[i + lane], s.mean);
  for (int64_t j = i; j < n; ++j) moment_one(m, static_cast<int>(j - i), x[j], s.mean);
  s.m2 = total(m.m2);
  s.m3 = total(m.m3);
  s.m4 = total(m.m4);
  return s;
}

inline TensorStats stats_of_piece(const float* x, int64_t n, const StatsRange& range) {
  const int32_t flush = std::bit_cast<int32_t>(range.flush), largest = std::bit_cast<int32_t>(range.largest);
  TensorStats s;
  for (int64_t i = 0; i < n; i += kBlock) s += stats_of_block(x + i, std::min(kBlock, n - i), flush, largest);
  return s;
}

}  // namespace
}  // namespace hpqf::kernels
