#include "hpqf/kernels/drive.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>

#include "hpqf/base/parallel.h"

namespace hpqf::kernels {
namespace {

using formats::BlockShape;

constexpr int64_t kGrain = 16384;  // elements: about 10 us of work, ten times what waking a thread costs
constexpr int64_t kChunk = 4096;   // elements between two refills of the random numbers (16 KiB of stack)
constexpr int64_t kStrip = 256;    // columns: 1 KiB runs of memory; a 64-row block of them (64 KiB) stays in L2
constexpr int64_t kGroup = 32, kGroupElements = 2048;  // small blocks taken together: 8 KiB, in L1
constexpr int32_t kInfinity = 0x7f800000;
constexpr int32_t kMayOverflow = 0x7f000000;  // from 2^127 on, code * scale can round to infinity

// One call, shared by all threads. Lambdas for parallel_for capture its address and at most one more word:
// std::function holds two without allocating.
struct Job {
  const Leaves& leaves;
  const float* in;
  float* out;     // one of out
  int8_t* codes;  // and codes is set
  float* scales;  // with codes
  BlockLayout layout;
  BlockFormat format;
  RoundOptions options;
  RoundParams params;
  std::atomic<int64_t> nonfinite{0}, overflow{0};
  std::atomic<int32_t> largest{0};  // finite magnitude, as bits; where asked for

  RoundStats stats() const { return {nonfinite.load(), overflow.load(), std::bit_cast<float>(largest.load())}; }
};

// Random numbers for the elements [first, first + n), n <= kChunk.
struct Numbers {
  alignas(64) uint32_t words[kChunk + 128];
  const uint32_t* fill(const Job& job, int64_t first, int64_t n) {
    if (job.options.rounding != Rounding::stochastic) return nullptr;
    const int64_t block = first / 4;
    job.leaves.random(words, job.options.seed, job.options.stream, static_cast<uint64_t>(block),
                      (first + n + 3) / 4 - block);
    return words + first % 4;
  }
};

// --- counts: both need a second look at the block, and only where its largest magnitude says so ---
void count_nonfinite(Job& job, int64_t first, int64_t n, int64_t stride, int32_t largest) {
  if (largest < kInfinity) return;
  int64_t count = 0;
  for (int64_t k = 0; k < n; ++k) count += !std::isfinite(job.in[first + k * stride]);
  job.nonfinite += count;
}
void count_overflow(Job& job, int64_t first, int64_t n, int64_t stride, int32_t largest, float scale) {
  if (largest < kMayOverflow || largest >= kInfinity) return;
  int64_t count = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t i = first + k * stride;
    count += std::isinf(job.codes ? static_cast<float>(job.codes[i]) * scale : job.out[i]);
  }
  job.overflow += count;
}

// Both arrays reach kColumnPad past n.
void scales_of(const Job& job, int32_t* largest, int64_t n, float* scales) {
  std::fill(largest + n, largest + n + kColumnPad, 0);
  job.leaves.block_scales(job.params, job.format.scale == formats::ScaleType::pow2, largest, n, scales);
}

void emit_run(Job& job, int64_t first, int64_t n, float scale) {
  if (job.codes) return job.leaves.codes(job.params, job.in + first, job.codes + first, n, scale);
  Numbers numbers;
  for (int64_t i = first; i < first + n; i += kChunk) {
    const int64_t size = std::min(kChunk, first + n - i);
    job.leaves.round_scaled(job.params, job.in + i, job.out + i, size, scale, numbers.fill(job, i, size));
  }
}

void raise(std::atomic<int32_t>& largest, int32_t value) {
  int32_t seen = largest.load();
  while (seen < value && !largest.compare_exchange_weak(seen, value)) {
  }
}

// Largest finite magnitude of a chunk as bits. The leaf lets NaN and infinity show, which is rare: then one by one.
int32_t finite_largest(const Job& job, int64_t first, int64_t n) {
  const int32_t all = job.leaves.largest_bits(job.in + first, n);
  if (all < kInfinity) return all;
  int32_t largest = 0;
  for (int64_t i = first; i < first + n; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(job.in[i]) & 0x7fffffff;
    if (bits < kInfinity) largest = std::max(largest, bits);
  }
  return largest;
}

// --- one function per way the blocks lie ---
void unscaled(Job& job) {
  base::parallel_for(0, job.layout.numel(), kGrain, [&job](int64_t begin, int64_t end) {
    Numbers numbers;
    Counts counts;
    int32_t largest = 0;
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t size = std::min(kChunk, end - i);
      if (job.options.amax) largest = std::max(largest, finite_largest(job, i, size));  // before `out` may overwrite it
      const Counts c = job.leaves.round(job.params, job.in + i, job.out + i, size, numbers.fill(job, i, size));
      counts.nonfinite += c.nonfinite;
      counts.overflow += c.overflow;
    }
    job.nonfinite += counts.nonfinite;
    job.overflow += counts.overflow;
    raise(job.largest, largest);
  });
}

void whole_tensor(Job& job) {
  struct Pass {
    Job& job;
    std::atomic<int32_t> largest{0};
    float scale = 0;
  } pass{job};
  base::parallel_for(0, job.layout.numel(), kGrain, [&pass](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kGrain) {
      const int64_t size = std::min(kGrain, end - i);
      const int32_t largest = pass.job.leaves.largest_bits(pass.job.in + i, size);
      count_nonfinite(pass.job, i, size, 1, largest);
      raise(pass.largest, largest);
    }
  });
  pass.scale = formats::block_scale(job.format, std::bit_cast<float>(pass.largest.load()));
  if (job.scales) job.scales[0] = pass.scale;
  base::parallel_for(0, job.layout.numel(), kGrain, [&pass](int64_t begin, int64_t end) {
    emit_run(pass.job, begin, end - begin, pass.scale);
    count_overflow(pass.job, begin, end - begin, 1, pass.largest, pass.scale);
  });
}

int64_t block_size(const Job& job) {
  return job.format.shape == BlockShape::row ? job.layout.axis : std::min<int64_t>(job.format.block, job.layout.axis);
}
int64_t blocks_per_line(const Job& job) { return (job.layout.axis + block_size(job) - 1) / block_size(job); }

// inner == 1: a block is a run of memory. The scales of a few small blocks are computed together: alone, each would
// wait for a maximum and two divisions one after the other.
void run_group(Job& job, int64_t first_block, int64_t count) {
  const int64_t size = block_size(job), per_line = blocks_per_line(job), axis = job.layout.axis;
  struct Run {
    int64_t first, n;
  } run[kGroup];
  alignas(64) int32_t largest[kGroup + kColumnPad];
  alignas(64) float scales[kGroup + kColumnPad];
  for (int64_t k = 0; k < count; ++k) {
    const int64_t line = (first_block + k) / per_line, at = (first_block + k - line * per_line) * size;
    run[k] = {line * axis + at, std::min(size, axis - at)};
    largest[k] = job.leaves.largest_bits(job.in + run[k].first, run[k].n);
  }
  scales_of(job, largest, count, scales);
  for (int64_t k = 0; k < count; ++k) {
    count_nonfinite(job, run[k].first, run[k].n, 1, largest[k]);
    emit_run(job, run[k].first, run[k].n, scales[k]);
    count_overflow(job, run[k].first, run[k].n, 1, largest[k], scales[k]);
  }
  if (job.scales) std::copy(scales, scales + count, job.scales + first_block);
}

void runs(Job& job) {
  const int64_t grain = std::max<int64_t>(1, kGrain / block_size(job));
  base::parallel_for(0, job.layout.outer * blocks_per_line(job), grain, [&job](int64_t begin, int64_t end) {
    const int64_t group = std::clamp<int64_t>(kGroupElements / block_size(job), 1, kGroup);
    for (int64_t b = begin; b < end; b += group) run_group(job, b, std::min(group, end - b));
  });
}

// inner > 1: a block is a column of `rows` elements, `inner` apart; `columns` of them lie side by side.
void column_strip(Job& job, int64_t first, int64_t rows, int64_t columns, float* scales_out) {
  const int64_t stride = job.layout.inner;
  alignas(64) int32_t largest[kStrip + kColumnPad];
  alignas(64) float scales[kStrip + kColumnPad];
  job.leaves.largest_bits_columns(job.in + first, rows, columns, stride, largest);
  scales_of(job, largest, columns, scales);
  const bool look_again = *std::max_element(largest, largest + columns) >= kMayOverflow;
  for (int64_t j = 0; look_again && j < columns; ++j) count_nonfinite(job, first + j, rows, stride, largest[j]);
  if (job.codes) {
    job.leaves.codes_columns(job.params, job.in + first, job.codes + first, rows, columns, stride, scales);
    std::copy(scales, scales + columns, scales_out);
  } else if (job.options.rounding == Rounding::stochastic) {
    Numbers numbers;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = first + r * stride;
      job.leaves.round_columns(job.params, job.in + at, job.out + at, 1, columns, stride, scales,
                               numbers.fill(job, at, columns));
    }
  } else {
    job.leaves.round_columns(job.params, job.in + first, job.out + first, rows, columns, stride, scales, nullptr);
  }
  for (int64_t j = 0; look_again && j < columns; ++j)
    count_overflow(job, first + j, rows, stride, largest[j], scales[j]);
}

void columns(Job& job) {
  const int64_t strips = (job.layout.inner + kStrip - 1) / kStrip;
  const int64_t tasks = job.layout.outer * blocks_per_line(job) * strips;
  const int64_t grain = std::max<int64_t>(1, kGrain / (block_size(job) * std::min(kStrip, job.layout.inner)));
  base::parallel_for(0, tasks, grain, [&job, strips](int64_t begin, int64_t end) {
    const int64_t size = block_size(job), per_line = blocks_per_line(job);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t block = t / strips, line = block / per_line, at = (block - line * per_line) * size;
      const int64_t column = (t - block * strips) * kStrip;
      column_strip(job, (line * job.layout.axis + at) * job.layout.inner + column, std::min(size, job.layout.axis - at),
                   std::min(kStrip, job.layout.inner - column),
                   job.scales ? job.scales + block * job.layout.inner + column : nullptr);
    }
  });
}

RoundStats drive(Job& job) {
  if (job.layout.numel() == 0) return {};
  switch (job.format.shape) {
    case BlockShape::none:
      unscaled(job);
      break;
    case BlockShape::tensor:
      whole_tensor(job);
      break;
    case BlockShape::row:
    case BlockShape::vector:
      job.layout.inner == 1 ? runs(job) : columns(job);
      break;
  }
  return job.stats();
}

}  // namespace

RoundStats drive_round(const Leaves& leaves, const float* in, float* out, BlockLayout layout, const BlockFormat& format,
                       const RoundOptions& options) {
  Job job{leaves, in, out, nullptr, nullptr, layout, format, options, round_params(format.format, options.exponent)};
  return drive(job);
}

RoundStats drive_int8(const Leaves& leaves, const float* in, int8_t* codes, float* scales, BlockLayout layout,
                      const BlockFormat& format) {
  Job job{leaves, in, nullptr, codes, scales, layout, format, {}, round_params(format.format)};
  return drive(job);
}

}  // namespace hpqf::kernels
