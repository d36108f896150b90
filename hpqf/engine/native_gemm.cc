#include "hpqf/engine/native_gemm.h"

#include <ATen/ops/_int_mm.h>
#include <ATen/ops/_scaled_mm.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include "hpqf/engine/census.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/rounding_aten.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;
using formats::BlockShape;

bool int_mm_takes(const BlockFormat& x, const BlockFormat& w, int64_t m, int64_t n, int64_t k, bool cpu) {
  return (cpu || m > 16) &&  // CUDA's kernel wants more than 16 rows
         x.format == Format::int8 && w.format == Format::int8 && x.shape != BlockShape::vector &&
         w.shape != BlockShape::vector && n % 8 == 0 && k % 8 == 0;
}

bool scaled_mm_takes(const BlockFormat& x, const BlockFormat& w, int64_t m, int64_t n, int64_t k) {
  const bool fp8 = (x.format == Format::fp8_e4m3 || x.format == Format::fp8_e5m2) && w.format == Format::fp8_e4m3;
  return fp8 && x.shape == BlockShape::tensor && w.shape == BlockShape::tensor && m % 16 == 0 && n % 16 == 0 &&
         k % 16 == 0;
}

// x [M,K] @ w [N,K]^T in fp32, both operands encoded along K. `record` becomes that of what ran: the batch is the
// contraction of the weight gradient, so a ragged last batch can be refused where the forward was not.
at::Tensor product(const at::Tensor& x, const at::Tensor& w, const BlockFormat& fx, const BlockFormat& fw, Layer& layer,
                   OpRecord& record) {
  const int64_t m = x.size(0), k = x.size(1), n = w.size(0);
  if (int_mm_takes(fx, fw, m, n, k, x.is_cpu())) {
    auto qx = encode_aten(x, fx, -1), qw = encode_aten(w, fw, -1);
    at::Tensor sums = at::_int_mm(qx.codes.contiguous(), qw.codes.contiguous().t()).to(at::kFloat);
    return sums.mul_(qx.scales).mul_(qw.scales.dim() == 2 ? qw.scales.t() : qw.scales);
  }
  if (scaled_mm_takes(fx, fw, m, n, k)) {
    auto qx = encode_aten(x, fx, -1), qw = encode_aten(w, fw, -1);
    return at::_scaled_mm(qx.codes.contiguous(), qw.codes.contiguous().t(), qx.scales, qw.scales, std::nullopt,
                          std::nullopt, at::kFloat);
  }
  record.reason =
      layer.runtime->intern(fmt::format("{}: takes no product of {}x{}x{} in {} x {}", record.implementation, m, n, k,
                                        formats::to_string(fx), formats::to_string(fw)));
  record.implementation = "emulated";
  check_strict(layer, record, false);
  return at::mm(round_aten(x, fx, -1), round_aten(w, fw, -1).t());
}

struct ScaledPlan {
  LayerRef layer;
  OpRecord record;
};

struct ScaledNode : ag::Function<ScaledNode> {
  static at::Tensor forward(ag::AutogradContext* ctx, const at::Tensor& a, const at::Tensor& w,
                            const std::optional<at::Tensor>& bias, std::shared_ptr<ScaledPlan> plan) {
    at::Tensor x = a.reshape({-1, a.size(-1)});
    at::Tensor y = product(x, w, plan->record.a, plan->record.b, *plan->layer, plan->record);
    if (bias) y.add_(*bias);
    ctx->save_for_backward({x, w});
    ctx->saved_data["bias"] = bias.has_value();
    ctx->saved_data["sizes"] = a.sizes().vec();
    NodeState<ScaledPlan>::save(*ctx, std::move(plan));
    auto sizes = a.sizes().vec();
    sizes.back() = w.size(0);
    return at::_unsafe_view(y, sizes);  // never a view: C++ nn::Linear adds its bias in place
  }

  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    AllAutocastOff off;
    const CountedRegion counted;
    const ScaledPlan& plan = NodeState<ScaledPlan>::of(*ctx);
    const OpRecord& r = plan.record;
    refuse_second_derivatives(*plan.layer, "runs in torch's " + std::string(r.implementation));
    const auto saved = ctx->get_saved_variables();
    at::Tensor da, db, dbias;
    if (!grads[0].defined()) return {da, db, dbias, at::Tensor()};
    at::Tensor g = grads[0].reshape({-1, saved[1].size(0)});
    if (ctx->needs_input_grad(0)) {
      const int64_t start = now_ns();
      OpRecord ran = r;
      da = product(g, saved[1].t().contiguous(), r.dgrad, r.b, *plan.layer, ran)
               .reshape(ctx->saved_data["sizes"].toIntVector());
      emit_backward(*plan.layer, ran, true, false, now_ns() - start);
    }
    if (ctx->needs_input_grad(1)) {
      const int64_t start = now_ns();
      OpRecord ran = r;
      db = product(g.t().contiguous(), saved[0].t().contiguous(), r.wgrad, r.a, *plan.layer, ran);
      emit_backward(*plan.layer, ran, false, true, now_ns() - start);
    }
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) dbias = g.sum(0);
    return {da, db, dbias, at::Tensor()};
  }
};

}  // namespace

at::Tensor run_cast(const GemmCall& call, const at::Tensor& a, Format format) {
  const auto type = format == Format::bf16 ? at::kBFloat16 : at::kHalf;
  std::optional<at::Tensor> bias =
      call.bias && call.bias->defined() ? std::optional(call.bias->to(type)) : std::nullopt;
  return call.torch(a.to(type), call.b.to(type), bias).to(a.scalar_type());
}

at::Tensor run_scaled(const GemmCall& call, const at::Tensor& a, const LayerRef& layer, const OpRecord& record) {
  const int64_t start = now_ns();
  // Autograd records the transpose of a weight that lies [in, out].
  at::Tensor y = ScaledNode::apply(a, call.b_in_out ? call.b.t() : call.b, present(call.bias),
                                   std::make_shared<ScaledPlan>(ScaledPlan{layer, record}));
  emit_forward(*layer, record, now_ns() - start);
  return y;
}

}  // namespace hpqf::engine
