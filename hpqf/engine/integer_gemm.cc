#include "hpqf/engine/integer_gemm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include "hpqf/engine/census.h"
#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;
using at::Tensor;

Tensor rows_of(const Tensor& t) { return t.resolve_neg().reshape({-1, t.size(-1)}); }

struct IntegerPlan {
  LayerRef layer;
  OpRecord record;
};

struct IntegerNode : ag::Function<IntegerNode> {
  // a [.., K], w [N, K] -> [.., N]
  static Tensor forward(ag::AutogradContext* ctx, const Tensor& a, const Tensor& w, const std::optional<Tensor>& bias,
                        std::shared_ptr<IntegerPlan> plan) {
    const OpRecord& r = plan->record;
    const Layer& layer = *plan->layer;
    const int64_t n = w.size(0);
    auto sizes = a.sizes().vec();
    sizes.back() = n;
    Tensor y = at::empty(sizes, a.options());
    const Tensor added = bias ? bias->contiguous() : Tensor();
    integer_forward(rows_of(a), packed_weight(w, CopyUse::packed, r.requested_b, layer), n, r.requested_a,
                    {y.mutable_data_ptr<float>(), n, false, bias ? added.const_data_ptr<float>() : nullptr}, layer);
    ctx->save_for_backward({a, w});
    ctx->saved_data["bias"] = bias.has_value();
    NodeState<IntegerPlan>::save(*ctx, std::move(plan));
    return y;
  }

  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    AllAutocastOff off;
    const CountedRegion counted;
    const IntegerPlan& plan = NodeState<IntegerPlan>::of(*ctx);
    const OpRecord& r = plan.record;
    const Layer& layer = *plan.layer;
    refuse_second_derivatives(layer, "runs in integers");
    Tensor da, db, dbias;
    if (!grads[0].defined()) return {da, db, dbias, Tensor()};
    const auto saved = ctx->get_saved_variables();
    const Tensor &a = saved[0], &w = saved[1];
    const Tensor g = rows_of(grads[0]).contiguous();
    if (ctx->needs_input_grad(0)) {
      const int64_t start = now_ns();
      if (is_fp32(r.dgrad)) {
        da = at::mm(g, w).view(a.sizes());
      } else {
        da = at::empty(a.sizes(), g.options());
        integer_input_gradient(g, packed_weight(w.t(), CopyUse::packed_dgrad, r.requested_b, layer), w.size(1),
                               r.requested_dgrad, {da.mutable_data_ptr<float>(), w.size(1)}, layer);
      }
      emit_backward(layer, r, true, false, now_ns() - start);
    }
    if (ctx->needs_input_grad(1)) {
      const int64_t start = now_ns();
      db = is_fp32(r.wgrad) ? at::mm(g.t(), rows_of(a))
                            : integer_weight_gradient(g, rows_of(a), r.requested_wgrad, layer);
      OpRecord ran = r;
      ran.a = r.requested_a;  // the input is the signed operand here
      emit_backward(layer, ran, false, true, now_ns() - start);
    }
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) dbias = g.sum(0);
    return {da, db, dbias, Tensor()};
  }
};

std::string formats_refusal(const BlockFormat& gradient, const BlockFormat& operand, const char* what) {
  if (is_fp32(gradient) || gradient == operand) return "";
  return fmt::format("{} in {} against an operand in {}: the integer GEMM takes one format for both", what,
                     formats::to_string(gradient), formats::to_string(operand));
}

}  // namespace

std::string integer_refusal(const GemmProblem& p) {
  if (p.device != c10::DeviceType::CPU) return "made for CPUs";
  if (auto why = integer_refusal(p.a); !why.empty()) return why;
  if (p.a != p.b)
    return fmt::format("both operands must have one format, not {} and {}", formats::to_string(p.a),
                       formats::to_string(p.b));
  if (!p.conv_unknown.empty()) return std::string(p.conv_unknown);
  if (p.conv) {
    // The kernels spend 32 lanes on fewer channels: measured slower than fp32 (16 channels: 0.6x).
    const int64_t channels = std::min(p.conv->in_channels, p.conv->out_channels) / p.conv->groups;
    if (p.conv->groups > 1 && channels == 1) return "a depthwise convolution has no products to speed up";
    if (channels < 32)
      return fmt::format("{} channels{}; fewer than 32 do not pay", channels, p.conv->groups > 1 ? " a group" : "");
  } else if (!p.is_linear || !p.b_is_weight) {
    return "a product of two activations";
  }
  if (!p.needs_grad) return "";
  if (auto why = formats_refusal(p.dgrad, p.b, "dgrad"); !why.empty()) return why;
  return formats_refusal(p.wgrad, p.a, "wgrad");
}

void name_integer_formats(OpRecord& r, bool conv, const Layer& layer) {
  if (conv)
    r.b = unsigned_side(r.b);
  else
    r.a = unsigned_side(r.a), r.dgrad = unsigned_side(r.dgrad), r.wgrad = unsigned_side(r.wgrad);
  const std::string_view reason = integer_reason(r.requested_a);
  r.reason = r.reason.empty() ? reason : layer.runtime->intern(fmt::format("{}; {}", reason, r.reason));
}

Tensor run_integer(const GemmCall& call, const Tensor& a, const LayerRef& layer, const OpRecord& record) {
  const int64_t start = now_ns();
  // Autograd records the transpose of a weight that lies [in, out].
  Tensor y = IntegerNode::apply(a, call.b_in_out ? call.b.t() : call.b, present(call.bias),
                                std::make_shared<IntegerPlan>(IntegerPlan{layer, record}));
  emit_forward(*layer, record, now_ns() - start);
  return y;
}

}  // namespace hpqf::engine
