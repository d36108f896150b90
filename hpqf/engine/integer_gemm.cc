#include "hpqf/engine/integer_gemm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/census.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/scope.h"
#include "hpqf/engine/weight_cache.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;
using at::Tensor;
using formats::BlockShape;
using kernels::GemmBlocks;
using kernels::MatrixView;
using kernels::PackRounding;

const kernels::GemmPath& path() { return *kernels::best_gemm_path(); }

bool is_fp32(const BlockFormat& f) { return f.format == Format::fp32; }
GemmBlocks blocks_of(const BlockFormat& f) {
  return {f.format == Format::int12 ? kernels::Grid::int12 : kernels::Grid::int8, f.block};
}
// The format of the operand that is stored unsigned.
BlockFormat a_side(BlockFormat f) {
  if (f.format == Format::int8) f.format = path().a_format;
  return f;
}

// [rows, k] with one axis dense.
struct Operand {
  Tensor held;
  MatrixView view;
};
Operand operand(const Tensor& t) {
  const int64_t rows = t.size(0), k = t.size(1);
  const float* data = t.const_data_ptr<float>();
  if ((t.stride(1) == 1 || k == 1) && (t.stride(0) >= k || rows == 1))
    return {t, {data, rows, k, std::max(t.stride(0), k), false}};
  if ((t.stride(0) == 1 || rows == 1) && (t.stride(1) >= rows || k == 1))
    return {t, {data, rows, k, std::max(t.stride(1), rows), true}};
  return operand(t.contiguous());
}

Tensor rows_of(const Tensor& t) { return t.resolve_neg().reshape({-1, t.size(-1)}); }

// Three lines of the gradient, its sizes and the layer's name make the seed; which product it serves is mixed in.
uint64_t gradient_seed(const Tensor& g, const Layer& layer, uint64_t product) {
  uint64_t seed = std::hash<std::string>()(layer.name) ^ uint64_t(g.size(0)) << 32 ^ uint64_t(g.size(1));
  const int64_t bytes = std::min<int64_t>(g.size(1), 64) * 4;
  if (g.stride(1) == 1)
    for (int64_t row : {int64_t(0), g.size(0) / 2, g.size(0) - 1})
      seed =
          (seed ^ kernels::fingerprint(g.const_data_ptr<float>() + row * g.stride(0), bytes)) * 0x9E3779B97F4A7C15ull;
  return seed + product;
}

// Counting elements costs a pass, so it waits until a block was seen to be bad.
void report_bad(int64_t bad_blocks, const Tensor& t, const BlockFormat& format, const Layer& layer, plan::Role role) {
  if (bad_blocks == 0) return;
  report_cast(layer, role, format, t.numel(), t.numel() - at::isfinite(t).sum().item<int64_t>(), 0);
}

Tensor packed_memory(const MatrixView& view, const GemmBlocks& blocks) {
  return at::empty({std::max<int64_t>(64, kernels::packed_bytes(view.rows, view.k, blocks))},
                   at::kByte);  // 64-byte aligned
}

// The packed weight [rows, k]: kept until the weight changes.
Tensor packed_weight(const Tensor& w, CopyUse use, const BlockFormat& format, const Layer& layer) {
  auto make = [&] {
    const Operand b = operand(w);
    Tensor packed = packed_memory(b.view, blocks_of(format));
    const int64_t bad = kernels::pack_b(path(), b.view, blocks_of(format), {}, packed.data_ptr());
    report_bad(bad, w, format, layer, plan::Role::weight);
    return packed;
  };
  return cacheable(w) ? weight_copy(w, use, format, 1, make) : make();
}

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
    const Tensor x = rows_of(a);
    const Operand xa = operand(x);
    const int64_t n = w.size(0);
    auto sizes = a.sizes().vec();
    sizes.back() = n;
    Tensor y = at::empty(sizes, a.options());
    const Tensor packed = packed_weight(w, CopyUse::packed, r.requested_b, layer);
    const Tensor added = bias ? bias->contiguous() : Tensor();
    const int64_t bad =
        kernels::gemm(path(), xa.view, {}, packed.const_data_ptr(), n, blocks_of(r.requested_a),
                      {y.mutable_data_ptr<float>(), n, false, bias ? added.const_data_ptr<float>() : nullptr});
    report_bad(bad, x, r.a, layer, plan::Role::input);
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
    if (at::GradMode::is_enabled())
      throw Error("second derivatives through layer '" + layer.name + "', which runs in integers",
                  "second derivatives in fp32, bf16 and fp16",
                  "run the sensitivity pass under engine::Passthrough (Python: hpqf.passthrough())");
    Tensor da, db, dbias;
    if (!grads[0].defined()) return {da, db, dbias, Tensor()};
    const auto saved = ctx->get_saved_variables();
    const Tensor &a = saved[0], &w = saved[1];
    const Tensor g = rows_of(grads[0]).contiguous();
    if (ctx->needs_input_grad(0)) {
      const int64_t start = now_ns();
      da = is_fp32(r.dgrad) ? at::mm(g, w).view(a.sizes()) : input_gradient(g, w, a, r, layer);
      emit_backward(layer, r, true, false, now_ns() - start);
    }
    if (ctx->needs_input_grad(1)) {
      const int64_t start = now_ns();
      db = is_fp32(r.wgrad) ? at::mm(g.t(), rows_of(a)) : weight_gradient(g, rows_of(a), r, layer);
      emit_backward(layer, r, false, true, now_ns() - start);
    }
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) dbias = g.sum(0);
    return {da, db, dbias, Tensor()};
  }

  // g [M, N] @ w [N, K]: the contraction runs over N.
  static Tensor input_gradient(const Tensor& g, const Tensor& w, const Tensor& a, const OpRecord& r,
                               const Layer& layer) {
    const Tensor packed = packed_weight(w.t(), CopyUse::packed_dgrad, r.requested_b, layer);
    Tensor da = at::empty(a.sizes(), g.options());
    const int64_t bad = kernels::gemm(path(), operand(g).view, {Rounding::stochastic, gradient_seed(g, layer, 1)},
                                      packed.const_data_ptr(), w.size(1), blocks_of(r.requested_dgrad),
                                      {da.mutable_data_ptr<float>(), w.size(1)});
    report_bad(bad, g, r.dgrad, layer, plan::Role::output_grad);
    return da;
  }

  // g [M, N]^T @ x [M, K]: the contraction runs over the rows of the batch.
  static Tensor weight_gradient(const Tensor& g, const Tensor& x, const OpRecord& r, const Layer& layer) {
    const int64_t n = g.size(1), k = x.size(1);
    Tensor db = at::empty({n, k}, g.options());
    const Operand left = operand(g.t()), right = operand(x.t());
    // What is bad in x was reported by the forward pass; what is bad in g shows in db and, with dgrad, in its report.
    kernels::gemm(path(), left.view, {Rounding::stochastic, gradient_seed(g, layer, 2)}, right.view, {},
                  blocks_of(r.requested_wgrad), {db.mutable_data_ptr<float>(), k});
    return db;
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
  if (!kernels::best_gemm_path()) return "this cpu has neither avx2 nor avx512 vnni";
  if (p.a != p.b)
    return fmt::format("both operands must have one format, not {} and {}", formats::to_string(p.a),
                       formats::to_string(p.b));
  if (p.a.shape != BlockShape::vector || p.a.scale != formats::ScaleType::fp32)
    return "needs fp32 scales in blocks along the contraction: int8[1x64]";
  if (p.a.block != 32 && p.a.block != 64 && p.a.block != 128 && p.a.block != 256)
    return fmt::format("blocks of {}; 32, 64, 128 and 256 are built", p.a.block);
  if (!p.is_linear || !p.b_is_weight) return "a product of two activations";
  if (p.needs_grad) {
    if (auto why = formats_refusal(p.dgrad, p.b, "dgrad"); !why.empty()) return why;
    if (auto why = formats_refusal(p.wgrad, p.a, "wgrad"); !why.empty()) return why;
  }
  return "";
}

void name_integer_formats(OpRecord& r, const Layer& layer) {
  r.a = a_side(r.a), r.dgrad = a_side(r.dgrad), r.wgrad = a_side(r.wgrad);
  std::string reason = path().name;
  if (r.a.format != r.requested_a.format)
    reason += fmt::format(": {} x {}, for sums of {} products would leave the 16 bits they are added in",
                          formats::name(r.a.format), formats::name(r.b.format), formats::name(r.requested_a.format));
  r.reason = layer.runtime->intern(r.reason.empty() ? std::move(reason) : fmt::format("{}; {}", reason, r.reason));
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
