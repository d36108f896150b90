#include "hpqf/kernels/round_params.h"

#include <bit>
#include <cmath>

namespace hpqf::kernels {
namespace {
constexpr int32_t kInfinity = 0x7f800000, kQuietNan = 0x7fc00000;
int32_t pattern(float x) { return std::bit_cast<int32_t>(x); }
}  // namespace

RoundParams round_params(Format format, int exponent) {
  const formats::FormatInfo& f = formats::info(format);
  RoundParams p;
  if (format == Format::fp32) return p;
  p.infinity = f.has_infinity ? kInfinity : kQuietNan;
  if (f.exponent_bits == 8) {
    p.kind = RoundParams::Kind::bits;
    p.dropped = 23 - f.mantissa_bits;
    return p;
  }
  p.kind = RoundParams::Kind::quantum;
  p.mantissa = f.is_integer ? 16 : f.mantissa_bits;
  p.lowest = pattern(f.is_integer ? 0x1p16f : f.smallest_normal);
  p.largest = pattern(f.largest);
  p.beyond = pattern(std::ldexp(1.0f, std::ilogb(f.largest) + 1));
  p.overflow = f.saturates ? p.largest : kInfinity;
  p.zero = f.is_integer ? 0.0f : -0.0f;
  for (int32_t* part : {&p.lowest, &p.largest, &p.beyond, &p.overflow})
    if (*part != kInfinity) *part -= exponent * (1 << 23);
  return p;
}

}  // namespace hpqf::kernels
