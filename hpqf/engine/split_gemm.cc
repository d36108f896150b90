#include "hpqf/engine/split_gemm.h"

#include "hpqf/base/error.h"
#include "hpqf/engine/census.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;

// What backward needs beside tensors. Not Tensor arguments, so autograd leaves them alone.
struct SplitPlan {
  LayerRef layer;
  OpRecord record;
  BackwardFormulas formulas;
  int64_t axis_y;
};

struct SplitNode : ag::Function<SplitNode> {
  static at::Tensor forward(ag::AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b,
                            const std::optional<at::Tensor>& bias, const GemmCall* call,
                            std::shared_ptr<SplitPlan> plan) {
    const OpRecord& r = plan->record;
    at::Tensor qa = round(a, r.a, call->axis_a, *plan->layer, plan::Role::input);
    at::Tensor qb = round_weight(b, r.b, call->axis_b, plan->layer);
    at::Tensor y = call->torch(qa, qb, bias);
    // An fp32 backward GEMM runs on the operands as they were, a low one on the rounded copies.
    ctx->save_for_backward({r.wgrad.format == Format::fp32 ? a : qa, r.dgrad.format == Format::fp32 ? b : qb});
    ctx->saved_data["bias"] = bias.has_value();
    NodeState<SplitPlan>::save(*ctx, std::move(plan));
    return y;
  }

  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    AllAutocastOff off;
    const CountedRegion counted;
    const SplitPlan& plan = NodeState<SplitPlan>::of(*ctx);
    const OpRecord& r = plan.record;
    if (at::GradMode::is_enabled())
      throw Error(
          "second derivatives through layer '" + plan.layer->name + "', whose dgrad and wgrad formats differ",
          "second derivatives where both backward GEMMs have one low format, or in fp32",
          "run the sensitivity pass under engine::Passthrough (Python: hpqf.passthrough()), or give both one format");
    const auto saved = ctx->get_saved_variables();
    const at::Tensor& g = grads[0];
    at::Tensor da, db, dbias;
    if (!g.defined()) return {da, db, dbias, at::Tensor(), at::Tensor()};
    if (ctx->needs_input_grad(0)) {
      const int64_t start = now_ns();
      da = plan.formulas.grad_a(round(g, r.dgrad, plan.axis_y, *plan.layer, plan::Role::output_grad), saved[1]);
      emit_backward(*plan.layer, r, true, false, now_ns() - start);
    }
    if (ctx->needs_input_grad(1)) {
      const int64_t start = now_ns();
      db = plan.formulas.grad_b(round(g, r.wgrad, plan.axis_y, *plan.layer, plan::Role::output_grad), saved[0]);
      emit_backward(*plan.layer, r, false, true, now_ns() - start);
    }
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) dbias = plan.formulas.grad_bias(g);
    return {da, db, dbias, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor run_split(const GemmCall& call, const at::Tensor& a, const LayerRef& layer, const OpRecord& record,
                     BackwardFormulas formulas) {
  const int64_t start = now_ns();
  auto plan = std::make_shared<SplitPlan>(SplitPlan{layer, record, std::move(formulas), call.axis_y});
  at::Tensor y = SplitNode::apply(a, call.b, present(call.bias), &call, std::move(plan));
  emit_forward(*layer, record, now_ns() - start);
  return y;
}

}  // namespace hpqf::engine
