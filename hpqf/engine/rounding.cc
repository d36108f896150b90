#include "hpqf/engine/rounding.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hpqf/engine/rounding_aten.h"
#include "hpqf/engine/scope.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;

bool unscaled(const BlockFormat& f) { return f.shape == formats::BlockShape::none; }

// The layout of a dense tensor seen from `axis`, when its memory order allows one without a copy.
std::optional<kernels::BlockLayout> layout_of(const at::Tensor& t, int64_t axis, bool scaled) {
  const int64_t dims = t.dim();
  if (!scaled && t.is_non_overlapping_and_dense()) return kernels::BlockLayout{1, t.numel(), 1};
  if (dims == 0) return kernels::BlockLayout{1, 1, 1};
  if (t.is_contiguous()) {
    kernels::BlockLayout l{1, t.size(axis), 1};
    for (int64_t d = 0; d < axis; ++d) l.outer *= t.size(d);
    for (int64_t d = axis + 1; d < dims; ++d) l.inner *= t.size(d);
    return l;
  }
  const auto cl = dims == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
  if (axis == 1 && (dims == 4 || dims == 5) && t.is_contiguous(cl))
    return kernels::BlockLayout{t.numel() / std::max<int64_t>(t.size(1), 1), t.size(1), 1};
  if (dims == 2 && t.t().is_contiguous())  // W.t() of a Linear: same blocks, seen from the other side
    return axis == 0 ? kernels::BlockLayout{t.size(1), t.size(0), 1} : kernels::BlockLayout{1, t.size(1), t.size(0)};
  return std::nullopt;
}

// Not a Tensor argument, so that autograd does not take the rounded copy for an input.
struct Held {
  at::Tensor tensor;
};

struct StraightThrough : ag::Function<StraightThrough> {
  static at::Tensor forward(ag::AutogradContext* ctx, const at::Tensor& t, const Held& rounded) {
    ctx->set_materialize_grads(false);
    return rounded.tensor
        .variable_data();  // its own tensor over the same bytes: a cached copy is handed out many times
  }
  static ag::variable_list backward(ag::AutogradContext*, ag::variable_list grads) { return {grads[0], at::Tensor()}; }
};

}  // namespace

void report_cast(const Layer& layer, plan::Role role, const BlockFormat& format, int64_t elements, int64_t nonfinite,
                 int64_t overflow) {
  if ((nonfinite || overflow) && layer.runtime->events)
    layer.runtime->events->on_cast({layer.name, role, format, elements, nonfinite, overflow});
}

bool rounds_in_kernel(const at::Tensor& t) {
  return t.is_cpu() && t.scalar_type() == at::kFloat && t.layout() == at::kStrided && t.has_storage() &&
         !t.unsafeGetTensorImpl()->is_python_dispatch() && !t.is_neg();
}

at::Tensor round(const at::Tensor& t, const BlockFormat& format, int64_t axis, const Layer& layer, plan::Role role) {
  if (format.format == Format::fp32 || t.numel() == 0) return t;
  at::NoGradGuard no_grad;
  if (axis < 0) axis += t.dim();
  if (!rounds_in_kernel(t)) return round_aten(t, format, axis);
  at::Tensor source = t;
  auto layout = layout_of(source, axis, !unscaled(format));
  if (!layout) {
    source = t.contiguous();
    layout = layout_of(source, axis, !unscaled(format));
  }
  at::Tensor out = at::empty_like(source);
  const float* from = source.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  const kernels::RoundStats stats =
      layer.runtime->compensate_range && range_moves(format)
          ? round_in_range(from, to, *layout, format, layer.ranges.at(role), layer.runtime->note_ranges)
          : kernels::quantize_dequantize(from, to, *layout, format);
  report_cast(layer, role, format, t.numel(), stats.nonfinite_in, stats.overflow);
  return out;
}

at::Tensor straight_through(const at::Tensor& t, const at::Tensor& rounded) {
  if (!at::GradMode::is_enabled() || !t.requires_grad()) return rounded;
  return StraightThrough::apply(t, Held{rounded});
}

at::Tensor round_ste(const at::Tensor& t, const BlockFormat& format, int64_t axis, const LayerRef& layer,
                     plan::Role role) {
  if (format.format == Format::fp32) return t;
  return straight_through(t, round(t, format, axis, *layer, role));
}

}  // namespace hpqf::engine
