#include "hpqf/train/tensor_look.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <cmath>
#include <limits>

#include "hpqf/kernels/quantize.h"

namespace hpqf::train {
namespace {

// Dense fp32 memory on the CPU in the order of the dimensions; shares the tensor's memory where it can.
at::Tensor readable(const at::Tensor& t) {
  at::Tensor values = t.detach();
  if (values.is_sparse()) values = values.coalesce().values();
  return values.to(at::kCPU, at::kFloat).contiguous();
}

kernels::BlockLayout layout_of(const at::Tensor& t, int64_t axis) {
  kernels::BlockLayout layout{1, t.numel(), 1};
  if (t.dim() < 2) return layout;
  if (axis < 0) axis += t.dim();
  layout.axis = t.size(axis);
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != axis) (d < axis ? layout.outer : layout.inner) *= t.size(d);
  return layout;
}

}  // namespace

void look_at(const at::Tensor& t, const BlockFormat& format, int64_t axis, bool round, Look& look) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = readable(t);
  if (x.numel() == 0) return;
  const float* values = x.const_data_ptr<float>();
  const bool narrow = format.format != Format::fp32;
  // A scaled format's range moves with its scales: only rounding tells. The cost of finding a range is some 60 calls of
  // the scalar codec.
  const kernels::StatsRange range =
      narrow && format.shape == formats::BlockShape::none ? kernels::stats_range(format.format) : kernels::StatsRange{};
  look.stats += kernels::tensor_stats(values, x.numel(), range);
  if (!round || !narrow) return;
  const at::Tensor rounded = at::empty_like(x);
  auto* out = rounded.mutable_data_ptr<float>();
  look.overflow += kernels::quantize_dequantize(values, out, layout_of(x, axis), format).overflow;
  look.error += kernels::quantisation_error(values, out, x.numel());
  look.rounded = true;
}

std::vector<double> norms_along(const at::Tensor& t, int64_t axis) {
  const at::NoGradGuard no_grad;
  std::vector<double> norms;
  for (int64_t i = 0; i < t.size(axis); ++i) {
    const at::Tensor slice = readable(t.select(axis, i));
    norms.push_back(kernels::tensor_stats(slice.const_data_ptr<float>(), slice.numel()).norm());
  }
  return norms;
}

Change change_of(const at::Tensor& before, const at::Tensor& now) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = readable(before), b = readable(now);
  const kernels::QuantisationError e =
      kernels::quantisation_error(a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel());
  // An update that is not finite has no size; it must not look like none.
  if (e.lost > 0) return {std::numeric_limits<double>::quiet_NaN(), e.signal};
  return {e.noise, e.signal};
}

}  // namespace hpqf::train
