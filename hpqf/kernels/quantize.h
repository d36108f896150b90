// Rounding tensors to a format and back: what emulation runs on every operand, so it must move at memory speed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/formats/block_format.h"

namespace hpqf::kernels {

// A tensor seen from its block axis: x[outer][axis][inner], contiguous. Linear inputs: inner = 1, axis = last
// dimension. Convolution operands NCHW: outer = N, axis = C, inner = H*W.
struct BlockLayout {
  int64_t outer = 1, axis = 0, inner = 1;
  int64_t numel() const { return outer * axis * inner; }
};

// What happened while rounding. Counted exactly, over the whole tensor.
struct RoundStats {
  int64_t nonfinite_in = 0;  // NaN or infinity already in the source
  int64_t overflow = 0;  // finite in the source, infinity after rounding, or clipped (saturating formats without scale;
                         // a scale is chosen so that nothing clips)
  float amax = 0;        // largest finite |source|, where RoundOptions::amax asked for it; else 0
  RoundStats& operator+=(const RoundStats& o) {
    nonfinite_in += o.nonfinite_in;
    overflow += o.overflow;
    if (o.amax > amax) amax = o.amax;
    return *this;
  }
};

struct RoundOptions {
  Rounding rounding = Rounding::nearest_even;
  uint64_t seed = 0;  // stochastic rounding draws Philox(seed, stream, index): same result for any thread count
  uint64_t stream = 0;
  // Unscaled formats with fewer exponents than fp32 (fp16; fp8 without scale): the range lies `exponent` binades lower,
  // out = round_to(in * 2^exponent) * 2^-exponent. From -80 to 80; elsewhere it must be 0.
  int exponent = 0;
  bool amax = false;  // measure RoundStats::amax; unscaled formats only. Costs a look at memory that is in the cache.
};

// out[i] = round_to(format, in[i] / scale) * scale with the block's scale (in[i] / scale, which may exceed the largest
// code by a rounding error, is cut to it); out may equal in, but not overlap it otherwise. Agrees bit for bit with
// formats::round_to and formats::block_scale (`ref` is that definition in a loop); a block with a NaN or infinity
// becomes quiet NaNs throughout. Rounds to nearest even unless told otherwise. Needs the CPU's default floating-point
// mode (nearest even, denormals on); with denormals off, results below 2^-126 become zero. Error for a format that
// formats::check refuses and for negative sizes. Cost: one read and one write of the tensor for unscaled formats;
// scaled formats read each block twice (the second time from cache, except shape `tensor`, and `row` along an axis
// whose lines do not fit the cache). Allocates nothing. Parallel through base::parallel_for. Below 16384 elements it
// runs on the calling thread.
HPQF_API RoundStats quantize_dequantize(const float* in, float* out, BlockLayout layout, const BlockFormat& format,
                                        const RoundOptions& options = {});

// Integer codes and scales of the same blocks, for native int8 GEMMs: codes[i] * scales[block] == quantize_dequantize.
// int8, int7 or int4, one code a byte; else Error. A block with a NaN or infinity has a NaN scale and codes 0.
// scales: one per block in [outer][ceil(axis/N)][inner] order (`row`: [outer][inner]; `tensor`: one); see
// scale_count().
HPQF_API int64_t scale_count(BlockLayout layout, const BlockFormat& format);  // 0 for unscaled formats
HPQF_API RoundStats quantize_int8(const float* in, int8_t* codes, float* scales, BlockLayout layout,
                                  const BlockFormat& format);

// Multiplies by `factor` in place and counts non-finite values of the product. The gradient pass of the loss scaler.
HPQF_API int64_t scale_and_count_nonfinite(float* data, int64_t n, float factor);

// 64-bit content fingerprint, 4 bytes at a time; equal content gives equal value on every ISA and for any thread count.
// Not cryptographic. A change inside one 4-byte word always changes the value; other changes with probability 1 - 2^-32
// or better. Runs at read bandwidth, so that a cached copy of a weight can be checked against `.data` writes that move
// no version.
HPQF_API uint64_t fingerprint(const void* data, int64_t bytes);

// The list of implementations, best first, each with what it needs; for reports and for tests that run every one.
// The functions above run the first one that this CPU can.
struct Implementation {
  const char* name;    // "avx512", "avx2", "portable" (128-bit lanes: SSE2 or NEON), "ref"
  const char* needs;   // instruction sets, in words
  bool (*runnable)();  // may run on this CPU
  RoundStats (*round)(const float*, float*, BlockLayout, const BlockFormat&, const RoundOptions&);
  RoundStats (*quantize_int8)(const float*, int8_t*, float*, BlockLayout, const BlockFormat&);
  int64_t (*scale_and_count)(float*, int64_t, float);
  uint64_t (*fingerprint)(const void*, int64_t);
};
HPQF_API std::span<const Implementation> implementations();

}  // namespace hpqf::kernels
