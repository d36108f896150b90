#include <fmt/format.h>

#include <cstdlib>

#include "hpqf/base/error.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/drive.h"
#include "hpqf/kernels/quantize.h"
#include "hpqf/kernels/ref/ref.h"

namespace hpqf::kernels {
namespace {

using formats::BlockShape;

// The driver bound to one set of inner loops, as the plain functions the list holds.
template <const Leaves& (*kLeaves)()>
constexpr Implementation vectorised(const char* name, const char* needs, bool (*runnable)()) {
  return {name,
          needs,
          runnable,
          [](const float* in, float* out, BlockLayout layout, const BlockFormat& format, const RoundOptions& options) {
            return drive_round(kLeaves(), in, out, layout, format, options);
          },
          [](const float* in, int8_t* codes, float* scales, BlockLayout layout, const BlockFormat& format) {
            return drive_int8(kLeaves(), in, codes, scales, layout, format);
          },
          [](float* data, int64_t n, float factor) { return drive_scale_and_count(kLeaves(), data, n, factor); },
          [](const void* data, int64_t bytes) { return drive_fingerprint(kLeaves(), data, bytes); }};
}

bool always() { return true; }

#if defined(__x86_64__)
// The checks below also ask the operating system whether it saves the wide registers.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

constexpr Implementation kList[] = {
#if defined(__x86_64__)
    vectorised<&avx512_leaves>("avx512", "AVX-512 F, BW, VL and DQ", &has_avx512),
    vectorised<&avx2_leaves>("avx2", "AVX2, FMA and F16C", &has_avx2),
#endif
    vectorised<&portable_leaves>("portable", "any CPU", &always),
    {"ref", "any CPU", &always, &ref::round, &ref::quantize_int8, &ref::scale_and_count, &ref::fingerprint},
};

const Implementation& best() {
  static const Implementation& chosen = first_runnable(implementations());
  return chosen;
}

void check_layout(const BlockLayout& layout) {
  if (layout.outer < 0 || layout.axis < 0 || layout.inner < 0)
    throw Error("a block layout of " + std::to_string(layout.outer) + " x " + std::to_string(layout.axis) + " x " +
                    std::to_string(layout.inner) + " elements",
                "sizes of 0 or more", "pass the sizes of the tensor before, at and after the block axis");
}

void check_range(const BlockFormat& format, int exponent) {
  if (exponent == 0) return;
  const bool movable = format.shape == formats::BlockShape::none && formats::info(format.format).exponent_bits < 8;
  if (movable && std::abs(exponent) <= kMostRangeExponent) return;
  throw Error(fmt::format("{} with its range moved by 2^{}", formats::to_string(format), exponent),
              fmt::format("exponents from -{0} to {0} for formats without scale whose range is under that of fp32",
                          kMostRangeExponent),
              "a scaled format follows the range by itself: leave the exponent 0");
}

}  // namespace

std::span<const Implementation> implementations() { return kList; }

RoundStats quantize_dequantize(const float* in, float* out, BlockLayout layout, const BlockFormat& format,
                               const RoundOptions& options) {
  check_layout(layout);
  formats::check(format);
  check_range(format, options.exponent);
  return best().round(in, out, layout, format, options);
}

int64_t scale_count(BlockLayout layout, const BlockFormat& format) {
  check_layout(layout);
  if (layout.numel() == 0) return 0;
  switch (format.shape) {
    case BlockShape::none:
      return 0;
    case BlockShape::tensor:
      return 1;
    case BlockShape::row:
      return layout.outer * layout.inner;
    case BlockShape::vector:
      return layout.outer * ((layout.axis + format.block - 1) / format.block) * layout.inner;
  }
  return 0;
}

RoundStats quantize_int8(const float* in, int8_t* codes, float* scales, BlockLayout layout, const BlockFormat& format) {
  check_layout(layout);
  formats::check(format);
  if (!formats::info(format.format).is_integer || formats::info(format.format).bits > 8)
    throw Error("8-bit codes of " + formats::to_string(format), "int8, int7 and int4", "quantise to int8");
  return best().quantize_int8(in, codes, scales, layout, format);
}

int64_t scale_and_count_nonfinite(float* data, int64_t n, float factor) {
  return best().scale_and_count(data, n, factor);
}
uint64_t fingerprint(const void* data, int64_t bytes) { return best().fingerprint(data, bytes); }

}  // namespace hpqf::kernels
