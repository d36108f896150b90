#include <algorithm>
#include <cmath>
#include <limits>

#include "hpqf/base/random.h"
#include "hpqf/kernels/ref/ref.h"

namespace hpqf::kernels::ref {
namespace {

using formats::BlockShape;

// Calls visit(block number, index_of, count) for each block; index_of(k) is where its k-th element lies in memory.
template <typename Visit>
void for_each_block(BlockLayout layout, const BlockFormat& format, Visit visit) {
  if (layout.numel() == 0) return;
  if (format.shape == BlockShape::tensor || format.shape == BlockShape::none)
    return visit(
        0, [](int64_t k) { return k; }, layout.numel());
  const int64_t size = format.shape == BlockShape::row ? layout.axis : format.block;
  int64_t number = 0;
  for (int64_t o = 0; o < layout.outer; ++o)
    for (int64_t first = 0; first < layout.axis; first += size)
      for (int64_t i = 0; i < layout.inner; ++i) {
        const int64_t base = (o * layout.axis + first) * layout.inner + i;
        visit(
            number++, [=](int64_t k) { return base + k * layout.inner; }, std::min(size, layout.axis - first));
      }
}

// std::max would lose a NaN; a block with one has no largest magnitude.
template <typename IndexOf>
float largest_magnitude(const float* in, IndexOf index_of, int64_t count) {
  float amax = 0;
  for (int64_t k = 0; k < count; ++k) {
    const float x = in[index_of(k)];
    if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
    amax = std::max(amax, std::fabs(x));
  }
  return amax;
}

// x * 2^exponent; beyond fp32 the largest of fp32 stands for it, as finite as it is.
float move(float x, int exponent) {
  if (exponent == 0 || !std::isfinite(x)) return x;
  const float moved = std::ldexp(x, exponent);
  return std::isinf(moved) ? std::copysign(std::numeric_limits<float>::max(), x) : moved;
}

}  // namespace

RoundStats round(const float* in, float* out, BlockLayout layout, const BlockFormat& format,
                 const RoundOptions& options) {
  RoundStats stats;
  const bool scaled = format.shape != BlockShape::none;
  const float largest = formats::info(format.format).largest;
  for_each_block(layout, format, [&](int64_t, auto index_of, int64_t count) {
    const float scale = scaled ? formats::block_scale(format, largest_magnitude(in, index_of, count)) : 1.0f;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = index_of(k);
      const float x = in[i];
      const uint32_t random = options.rounding == Rounding::stochastic
                                  ? base::random_bits(options.seed, options.stream, static_cast<uint64_t>(i))
                                  : 0;
      if (std::isnan(scale)) {
        out[i] = std::numeric_limits<float>::quiet_NaN();
      } else {
        out[i] = scaled ? formats::round_to(format.format, std::clamp(x / scale, -largest, largest), options.rounding,
                                            random) *
                              scale
                        : move(formats::round_to(format.format, move(x, options.exponent), options.rounding, random),
                               -options.exponent);
        stats.overflow +=
            std::isfinite(x) &&
            (std::isinf(out[i]) ||
             (!scaled && formats::overflows(format.format, move(x, options.exponent), options.rounding, random)));
      }
      stats.nonfinite_in += !std::isfinite(x);
      if (options.amax && std::isfinite(x)) stats.amax = std::max(stats.amax, std::fabs(x));
    }
  });
  return stats;
}

RoundStats quantize_int8(const float* in, int8_t* codes, float* scales, BlockLayout layout, const BlockFormat& format) {
  RoundStats stats;
  const int unused = 32 - formats::info(format.format).bits;
  for_each_block(layout, format, [&](int64_t number, auto index_of, int64_t count) {
    const float scale = scales[number] = formats::block_scale(format, largest_magnitude(in, index_of, count));
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = index_of(k);
      const float x = in[i];
      const uint32_t code = std::isnan(scale) ? 0 : formats::encode(format.format, x / scale);
      codes[i] = static_cast<int8_t>(static_cast<int32_t>(code << unused) >> unused);
      stats.nonfinite_in += !std::isfinite(x);
      stats.overflow += std::isfinite(x) && std::isinf(static_cast<float>(codes[i]) * scale);
    }
  });
  return stats;
}

int64_t scale_and_count(float* data, int64_t n, float factor) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    data[i] *= factor;
    count += !std::isfinite(data[i]);
  }
  return count;
}

}  // namespace hpqf::kernels::ref
