#include "hpqf/engine/integer_conv.h"

#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>

#include "hpqf/engine/census.h"
#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;
using at::MemoryFormat;
using at::Tensor;
using kernels::ConvPass;
using kernels::ConvShape;
using kernels::ImageLayout;

const kernels::GemmPath& path() { return *kernels::best_gemm_path(); }

MemoryFormat memory_format(const Tensor& x, const Tensor& w) {
  const bool last = x.dim() == 4 && (x.suggest_memory_format() == MemoryFormat::ChannelsLast ||
                                     w.suggest_memory_format() == MemoryFormat::ChannelsLast);
  return last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
}
ImageLayout layout_of(MemoryFormat format) {
  return format == MemoryFormat::ChannelsLast ? ImageLayout::channels_last : ImageLayout::channels_first;
}
Tensor dense(const Tensor& t, MemoryFormat format) { return t.resolve_neg().contiguous(format); }
kernels::ConstImages images(const Tensor& t, MemoryFormat format) {
  return {t.const_data_ptr<float>(), layout_of(format)};
}

// Packed weights depend on the geometry, not on the batch.
int64_t geometry_key(const ConvShape& s) {
  uint64_t h = 0;
  for (int64_t v :
       {s.height, s.width, s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, s.groups})
    h = (h ^ uint64_t(v)) * 0x9E3779B97F4A7C15ull;
  return int64_t(h);
}

Tensor packed_weights(const Tensor& w, const ConvShape& shape, ConvPass pass, const BlockFormat& format,
                      const Layer& layer) {
  auto make = [&] {
    const MemoryFormat lies = memory_format(w, w);
    const Tensor weights = dense(w, lies);
    Tensor packed =
        at::empty({std::max<int64_t>(64, kernels::conv_weight_bytes(shape, pass, blocks_of(format)))}, at::kByte);
    report_bad_blocks(kernels::conv_pack_weights(path(), shape, pass, images(weights, lies), blocks_of(format), {},
                                                 packed.data_ptr()),
                      w, unsigned_side(format), layer, plan::Role::weight);
    return packed;
  };
  const CopyUse use = pass == ConvPass::forward ? CopyUse::packed : CopyUse::packed_dgrad;
  return cacheable(w) ? weight_copy(w, use, format, geometry_key(shape), make) : make();
}

struct ConvPlan {
  LayerRef layer;
  OpRecord record;
  ConvShape shape;
};

struct IntegerConvNode : ag::Function<IntegerConvNode> {
  static Tensor forward(ag::AutogradContext* ctx, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
                        std::shared_ptr<ConvPlan> plan) {
    const ConvShape& s = plan->shape;
    const OpRecord& r = plan->record;
    const MemoryFormat format = memory_format(x, w);
    auto sizes = x.sizes().vec();
    sizes[1] = s.out_channels;
    if (x.dim() == 4) sizes[2] = s.out_height();
    sizes.back() = s.out_width();
    Tensor y = at::empty(sizes, x.options().memory_format(format));
    const Tensor image = dense(x, format), added = bias ? bias->contiguous() : Tensor();
    const Tensor packed = packed_weights(w, s, ConvPass::forward, r.requested_b, *plan->layer);
    const int64_t bad = kernels::conv_forward(
        path(), s, images(image, format), {}, packed.const_data_ptr(), blocks_of(r.requested_a),
        {y.mutable_data_ptr<float>(), layout_of(format)}, bias ? added.const_data_ptr<float>() : nullptr);
    report_bad_blocks(bad, x, r.a, *plan->layer, plan::Role::input);
    ctx->save_for_backward({x, w});
    ctx->saved_data["bias"] = bias.has_value();
    NodeState<ConvPlan>::save(*ctx, std::move(plan));
    return y;
  }

  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    AllAutocastOff off;
    const CountedRegion counted;
    const ConvPlan& plan = NodeState<ConvPlan>::of(*ctx);
    const OpRecord& r = plan.record;
    const Layer& layer = *plan.layer;
    refuse_second_derivatives(layer, "runs in integers");
    Tensor dx, dw, dbias;
    if (!grads[0].defined()) return {dx, dw, dbias, Tensor()};
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1];
    const MemoryFormat format = memory_format(x, w);
    const Tensor g = dense(grads[0], format);
    if (ctx->needs_input_grad(0)) {
      const int64_t start = now_ns();
      dx = is_fp32(r.dgrad) ? by_torch(plan.shape, g, x, w, true) : input_gradient(plan, g, x, w, format);
      emit_backward(layer, r, true, false, now_ns() - start);
    }
    if (ctx->needs_input_grad(1)) {
      const int64_t start = now_ns();
      dw = is_fp32(r.wgrad) ? by_torch(plan.shape, g, x, w, false) : weight_gradient(plan, g, x, w, format);
      OpRecord ran = r;
      ran.a = unsigned_side(r.a);  // the input is the unsigned operand here
      emit_backward(layer, ran, false, true, now_ns() - start);
    }
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2))
      dbias = x.dim() == 4 ? g.sum({0, 2, 3}) : g.sum({0, 2});
    return {dx, dw, dbias, Tensor()};
  }

  static Tensor input_gradient(const ConvPlan& plan, const Tensor& g, const Tensor& x, const Tensor& w,
                               MemoryFormat format) {
    const OpRecord& r = plan.record;
    Tensor dx = at::empty(x.sizes(), g.options().memory_format(format));
    const Tensor packed = packed_weights(w, plan.shape, ConvPass::input_gradient, r.requested_b, *plan.layer);
    const int64_t bad = kernels::conv_input_gradient(
        path(), plan.shape, images(g, format), {Rounding::stochastic, gradient_seed(g, *plan.layer, 1)},
        packed.const_data_ptr(), blocks_of(r.requested_dgrad), {dx.mutable_data_ptr<float>(), layout_of(format)});
    report_bad_blocks(bad, g, r.dgrad, *plan.layer, plan::Role::output_grad);
    return dx;
  }

  static Tensor weight_gradient(const ConvPlan& plan, const Tensor& g, const Tensor& x, const Tensor& w,
                                MemoryFormat format) {
    const MemoryFormat lies = memory_format(w, w);
    Tensor dw = at::empty(w.sizes(), g.options().memory_format(lies));
    const Tensor image = dense(x, format);
    // What is bad in x was reported by the forward pass; what is bad in g shows in dw and, with dgrad, in its report.
    kernels::conv_weight_gradient(path(), plan.shape, images(image, format), {}, images(g, format),
                                  {Rounding::stochastic, gradient_seed(g, *plan.layer, 2)},
                                  blocks_of(plan.record.requested_wgrad),
                                  {dw.mutable_data_ptr<float>(), layout_of(lies)});
    return dw;
  }

  static Tensor by_torch(const ConvShape& s, const Tensor& g, const Tensor& x, const Tensor& w, bool input) {
    const bool two = x.dim() == 4;
    auto pair = [two](int64_t h, int64_t w) { return two ? std::vector<int64_t>{h, w} : std::vector<int64_t>{w}; };
    auto gradients =
        at::convolution_backward(g, x, w, std::nullopt, pair(s.stride_h, s.stride_w), pair(s.padding_h, s.padding_w),
                                 pair(s.dilation_h, s.dilation_w), false, pair(0, 0), s.groups, {input, !input, false});
    return input ? std::get<0>(gradients) : std::get<1>(gradients);
  }
};

}  // namespace

Tensor run_integer_conv(const GemmCall& call, const Tensor& x, const LayerRef& layer, const OpRecord& record) {
  const int64_t start = now_ns();
  Tensor y = IntegerConvNode::apply(x, call.b, present(call.bias),
                                    std::make_shared<ConvPlan>(ConvPlan{layer, record, *call.conv}));
  emit_forward(*layer, record, now_ns() - start);
  return y;
}

}  // namespace hpqf::engine
