// Operands rounded to a format: the numbers of low precision on fp32 arithmetic ("emulated").
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "hpqf/base/export.h"
#include "hpqf/engine/layer.h"

namespace hpqf::engine {

// Rounds `t` to `format` and back; blocks run along `axis` (negative counts from the end). Same shape and dtype, new
// memory; not recorded by autograd. fp32 CPU tensors run through kernels::quantize_dequantize (non-contiguous ones are
// made contiguous, channels-last keeps its layout); other devices through the same arithmetic in ATen ops. Casts that
// overflow or meet a non-finite source are reported to the layer's sink as a CastEvent. An fp32 format returns `t`
// itself.
at::Tensor round(const at::Tensor& t, const BlockFormat& format, int64_t axis, const Layer& layer, plan::Role role);

// The same, differentiable: straight through (gradient 1). Works under double backward and functorch.
at::Tensor round_ste(const at::Tensor& t, const BlockFormat& format, int64_t axis, const LayerRef& layer,
                     plan::Role role);

// `rounded` in the place of `t`, with gradient 1 to `t`.
at::Tensor straight_through(const at::Tensor& t, const at::Tensor& rounded);

// Tells the layer's sink of a cast that met non-finite values or overflowed.
void report_cast(const Layer& layer, plan::Role role, const BlockFormat& format, int64_t elements, int64_t nonfinite,
                 int64_t overflow);

// Dense fp32 CPU memory, which the kernels can read as it lies.
bool rounds_in_kernel(const at::Tensor& t);

// The compute copy of a weight: rounded once per content and reused while neither the version nor the content moved
// (writes through `.data` change no version, so the content's fingerprint is compared too). Straight through for
// autograd.
at::Tensor round_weight(const at::Tensor& w, const BlockFormat& format, int64_t axis, const LayerRef& layer);

// For tests and reports.
struct WeightCacheStats {
  int64_t hits = 0, misses = 0, entries = 0, bytes = 0;
};
HPQF_API WeightCacheStats weight_cache_stats();
HPQF_API void clear_weight_cache();

}  // namespace hpqf::engine
