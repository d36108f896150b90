#include "hpqf/engine/rounding_aten.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/frexp.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ldexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/round.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/where.h>

#include <limits>

namespace hpqf::engine {
namespace {

using formats::BlockShape;

at::ScalarType torch_type(Format f) {
  switch (f) {
    case Format::bf16:
      return at::kBFloat16;
    case Format::fp16:
      return at::kHalf;
    case Format::fp8_e4m3:
      return at::kFloat8_e4m3fn;
    case Format::fp8_e5m2:
      return at::kFloat8_e5m2;
    default:
      return at::kFloat;
  }
}

// Round half to even at bit 13 of the pattern; infinities and NaN keep theirs.
at::Tensor round_tf32(const at::Tensor& t) {
  at::Tensor bits = t.view(at::kInt);
  at::Tensor rounded =
      bits.add(bits.bitwise_right_shift(13).bitwise_and(1)).add(0xfff).bitwise_and(~0x1fff).view(at::kFloat);
  return at::where(t.isfinite(), rounded, t);
}

// Elements in units of their scale -> codes as real numbers.
at::Tensor round_elements(const at::Tensor& t, Format f) {
  const auto& info = formats::info(f);
  if (f == Format::tf32) return round_tf32(t);
  if (info.is_integer) return t.round().clamp(-info.largest, info.largest);
  // Finite values saturate where the format does; an infinity in the source stays visible (NaN in e4m3, which has
  // none).
  at::Tensor x = info.saturates ? at::where(t.isfinite(), t.clamp(-info.largest, info.largest), t) : t;
  return x.to(torch_type(f)).to(at::kFloat);
}

at::Tensor scale_of(const at::Tensor& amax, const BlockFormat& format) {
  const float largest = formats::info(format.format).largest;
  at::Tensor s = amax.div(largest).clamp_min(std::numeric_limits<float>::min());
  if (format.scale == formats::ScaleType::pow2) {  // up to the next power of two, exactly: log2 would round near them
    auto [fraction, exponent] = at::frexp(s);
    s = at::ldexp(at::ones_like(s), exponent.sub(fraction.eq(0.5).to(exponent.scalar_type())));
  }
  return at::where(amax.isfinite(), s, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

ScaledCodes encode_aten(const at::Tensor& t, const BlockFormat& format, int64_t axis) {
  if (axis < 0) axis += t.dim();
  at::Tensor magnitude = t.to(at::kFloat).abs();
  at::Tensor scales =
      scale_of(format.shape == BlockShape::row ? magnitude.amax({axis}, true) : magnitude.amax(), format);
  at::Tensor units = round_elements(t.to(at::kFloat).div(scales), format.format);
  return {units.to(formats::info(format.format).is_integer ? at::kChar : torch_type(format.format)), scales};
}

at::Tensor round_aten(const at::Tensor& t, const BlockFormat& format, int64_t axis) {
  const auto type = t.scalar_type();
  at::Tensor x = t.to(at::kFloat);
  if (format.shape == BlockShape::none) return round_elements(x, format.format).to(type);
  if (format.shape != BlockShape::vector) {
    at::Tensor magnitude = x.abs();
    at::Tensor s = scale_of(
        format.shape == BlockShape::row && x.dim() > 0 ? magnitude.amax({axis}, true) : magnitude.amax(), format);
    return round_elements(x.div(s), format.format).mul(s).to(type);
  }
  if (x.dim() == 0) return round_aten(t.reshape({1}), format, 0).reshape({});
  // 1xN blocks: bring the axis last, pad it to whole blocks (zeros change no maximum), scale, cut.
  at::Tensor lines = x.movedim(axis, -1);
  const int64_t n = lines.size(-1), blocks = (n + format.block - 1) / format.block;
  at::Tensor padded = at::constant_pad_nd(lines, {0, blocks * format.block - n}).unflatten(-1, {blocks, format.block});
  at::Tensor s = scale_of(padded.abs().amax({-1}, true), format);
  return round_elements(padded.div(s), format.format)
      .mul(s)
      .flatten(-2)
      .narrow(-1, 0, n)
      .movedim(-1, axis)
      .contiguous()
      .to(type);
}

}  // namespace hpqf::engine
