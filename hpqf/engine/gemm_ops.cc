// Kernels of the linear family and attention.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/ops/addbmm_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/linalg_vecdot_ops.h>
#include <ATen/ops/linear_ops.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/ops/outer_ops.h>
#include <ATen/ops/scaled_dot_product_attention_ops.h>

#include "hpqf/engine/ops.h"
#include "hpqf/engine/probe.h"
#include "hpqf/engine/rounding.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;
using namespace at::_ops;  // NOLINT: only names of op structs

double product_flops(const Tensor& a, const Tensor& b) {  // 2 per multiply-add
  if (a.dim() == 0 || b.dim() == 0) return 0;
  const double k = double(a.size(-1));
  if (a.dim() == 1 && b.dim() == 1) return 2 * k;
  if (b.dim() == 1) return 2 * double(a.numel());
  const double n = double(b.size(-1));
  if (a.dim() == 1) return 2 * double(b.numel());
  double batch_a = double(a.numel()) / std::max(1.0, double(a.size(-2)) * k),
         batch_b = double(b.numel()) / std::max(1.0, k * n);
  return 2 * std::max(batch_a, batch_b) * double(a.size(-2)) * k * n;  // one operand may be broadcast over the batch
}

Tensor rows_of(const Tensor& t) { return t.dim() == 2 ? t : t.reshape({-1, t.size(-1)}); }

// y = x @ w^T, w [out, in].
std::optional<BackwardFormulas> linear_formulas() {
  return BackwardFormulas{
      [](const Tensor& g, const Tensor& w) { return g.matmul(w); },
      [](const Tensor& g, const Tensor& x) { return rows_of(g).t().mm(rows_of(x)); },
      [](const Tensor& g) { return rows_of(g).sum(0); },
  };
}

// y = a @ b, b [in, out]: how C++ modules call their weights.
std::optional<BackwardFormulas> product_formulas(const Tensor& a, const Tensor& b) {
  if (a.dim() < 2 || b.dim() != 2) return std::nullopt;
  return BackwardFormulas{
      [](const Tensor& g, const Tensor& b) { return g.matmul(b.t()); },
      [](const Tensor& g, const Tensor& a) { return rows_of(a).t().mm(rows_of(g)); },
      [](const Tensor& g) { return rows_of(g).sum(0); },
  };
}

Tensor run_linear(const Tensor& x, const Tensor& w, const OptTensor& bias) {
  OwnKeyOff off;
  Layer* layer = find_layer(w);
  if (!layer) return linear::call(x, w, bias);
  return run_gemm({.op = "linear",
                   .a = x,
                   .b = w,
                   .bias = bias,
                   .axis_a = -1,
                   .axis_b = -1,
                   .axis_y = -1,
                   .b_is_weight = true,
                   .is_linear = w.dim() == 2,
                   .flops = w.dim() == 2 ? 2.0 * double(x.numel()) * double(w.size(0)) : 2.0 * double(x.numel()),
                   .torch = [](const Tensor& a, const Tensor& b, const OptTensor& c) { return linear::call(a, b, c); },
                   .formulas = [&] { return w.dim() == 2 && x.dim() >= 1 ? linear_formulas() : std::nullopt; },
                   .repeat =
                       [] {
                         return Repeat{[](const Tensor& a, const Tensor& b) { return linear::call(a, b, {}); }, {}};
                       }},
                  *layer);
}

Repeat repeat_product() {  // mm, bmm, mv and dot are cases of matmul
  return {[](const Tensor& a, const Tensor& b) { return matmul::call(a, b); }, {}};
}

// A plain product; the second operand is a weight when it is a parameter of the model.
template <class Torch>
Tensor run_product(std::string_view op, const Tensor& a, const Tensor& b, Torch torch) {
  OwnKeyOff off;
  const bool weight = is_parameter(b), weight_first = !weight && is_parameter(a);
  Layer* layer = find_layer(weight_first ? a : b);
  if (!layer) return torch(a, b);
  const int64_t axis_b = b.dim() >= 2 ? -2 : -1;
  return run_gemm({.op = op,
                   .a = a,
                   .b = b,
                   .bias = std::nullopt,
                   .axis_a = -1,
                   .axis_b = axis_b,
                   .axis_y = -1,
                   .b_is_weight = weight,
                   .is_linear = weight && b.dim() == 2 && a.dim() >= 2,
                   .b_in_out = true,
                   .flops = product_flops(a, b),
                   .torch = [&](const Tensor& x, const Tensor& y, const OptTensor&) { return torch(x, y); },
                   .formulas = [&] { return product_formulas(a, b); },
                   .repeat = repeat_product},
                  *layer);
}

Tensor run_matmul(const Tensor& a, const Tensor& b) {
  return run_product("matmul", a, b, [](const Tensor& x, const Tensor& y) { return matmul::call(x, y); });
}
Tensor run_mv(const Tensor& a, const Tensor& b) {
  return run_product("mv", a, b, [](const Tensor& x, const Tensor& y) { return mv::call(x, y); });
}
Tensor run_dot(const Tensor& a, const Tensor& b) {
  return run_product("dot", a, b, [](const Tensor& x, const Tensor& y) { return dot::call(x, y); });
}
Tensor run_mm(const Tensor& a, const Tensor& b) {
  return run_product("mm", a, b, [](const Tensor& x, const Tensor& y) { return mm::call(x, y); });
}
Tensor run_bmm(const Tensor& a, const Tensor& b) {
  return run_product("bmm", a, b, [](const Tensor& x, const Tensor& y) { return bmm::call(x, y); });
}

// beta * c + alpha * (a @ b). With plain factors `c` is the bias of a C++ nn::Linear; otherwise it stays inside torch's
// op.
template <class OP>
Tensor run_added(std::string_view op, const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta,
                 const at::Scalar& alpha) {
  OwnKeyOff off;
  Layer* layer = find_layer(b);
  if (!layer) return OP::call(c, a, b, beta, alpha);
  const bool plain = c.dim() == 1 && b.dim() == 2 && beta.equal(1) && alpha.equal(1);
  return run_gemm({.op = op,
                   .a = a,
                   .b = b,
                   .bias = plain ? OptTensor(c) : std::nullopt,
                   .axis_a = -1,
                   .axis_b = b.dim() >= 2 ? -2 : -1,
                   .axis_y = -1,
                   .b_is_weight = is_parameter(b),
                   .is_linear = plain && is_parameter(b),
                   .b_in_out = true,
                   .flops = product_flops(a, b),
                   .torch = [&](const Tensor& x, const Tensor& y, const OptTensor& bias) -> Tensor {
                     if (plain && !bias) return mm::call(x, y);
                     // In torch's own low precision the addend comes in the operands' type too.
                     return OP::call(c.scalar_type() == x.scalar_type() ? c : c.to(x.scalar_type()), x, y, beta, alpha);
                   },
                   .formulas = [&] { return plain ? product_formulas(a, b) : std::nullopt; },
                   .repeat =
                       [&] {
                         return Repeat{[alpha](const Tensor& x, const Tensor& y) {
                                         Tensor product = matmul::call(x, y);
                                         if constexpr (std::is_same_v<OP, addbmm>) product = product.sum(0);
                                         return alpha.equal(1) ? product : product.mul(alpha);
                                       },
                                       {}};
                       }},
                  *layer);
}
Tensor run_addmm(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return run_added<addmm>("addmm", c, a, b, beta, alpha);
}
Tensor run_baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return run_added<baddbmm>("baddbmm", c, a, b, beta, alpha);
}

Tensor run_addmv(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return run_added<addmv>("addmv", c, a, b, beta, alpha);
}
Tensor run_addbmm(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return run_added<addbmm>("addbmm", c, a, b, beta, alpha);
}

// Attention is not bilinear: its error is the difference of two runs, without dropout, which would be another one each.
Repeat repeat_attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& mask, bool causal,
                        std::optional<double> scale, bool gqa) {
  auto run = [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention::call(q, k, v, mask, 0.0, causal, scale, gqa);
  };
  return {{}, [run, q = q.detach(), k = k.detach(), v = v.detach()](const BlockFormat& f, const Layer& layer) {
            auto rounded = [&](const Tensor& t, int64_t axis) { return round(t, f, axis, layer, plan::Role::input); };
            return run(rounded(q, -1), rounded(k, -1), rounded(v, -2)).sub(run(q, k, v));
          }};
}

// Both products of attention on rounded q, k, v; the probabilities between them stay fp32 (softmax rule), so torch's
// fused kernel serves.
Tensor run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptTensor& mask, double dropout,
                     bool causal, std::optional<double> scale, bool gqa) {
  using OP = scaled_dot_product_attention;
  OwnKeyOff off;
  Layer* layer = find_layer();
  if (!layer) return OP::call(q, k, v, mask, dropout, causal, scale, gqa);
  const double flops = q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2
                           ? 2.0 * double(q.numel()) * double(k.size(-2)) + 2.0 * double(q.numel()) /
                                                                                std::max(1.0, double(q.size(-1))) *
                                                                                double(k.size(-2)) * double(v.size(-1))
                           : 0;
  Tensor value = v;
  if (q.scalar_type() == at::kFloat && k.scalar_type() == at::kFloat && v.scalar_type() == at::kFloat && v.dim() >= 2 &&
      transform_active(v, v).empty())
    value =
        round_ste(v, layer->precision().input, -2, ref(layer), plan::Role::input);  // contraction runs over the keys
  return run_gemm({.op = "attention",
                   .a = q,
                   .b = k,
                   .bias = std::nullopt,
                   .axis_a = -1,
                   .axis_b = -1,
                   .axis_y = -1,
                   .b_is_weight = false,
                   .is_linear = false,
                   .flops = flops,
                   .torch =
                       [&](const Tensor& x, const Tensor& y, const OptTensor&) {
                         return OP::call(x, y,
                                         value.scalar_type() == x.scalar_type() ? value : value.to(x.scalar_type()),
                                         mask, dropout, causal, scale, gqa);
                       },
                   .formulas = [] { return std::optional<BackwardFormulas>(); },
                   .repeat = [&] { return repeat_attention(q, k, v, mask, causal, scale, gqa); }},
                  *layer);
}

// Products with nothing to contract, or that torch computes without a GEMM: left as they are, and the audit says so.
template <class OP, class... A>
Tensor run_unplanned(std::string_view reason, double flops, const Tensor& a, const Tensor& b, const A&... arguments) {
  OwnKeyOff off;
  Layer* layer = is_parameter(a) ? find_layer(a) : find_layer(b);
  if (!layer) return OP::call(arguments...);
  AllAutocastOff all;
  const LayerPrecision& p = layer->precision();
  return run_untouched({.op = OP::name + 6,
                        .flops = flops,
                        .is_gemm = true,
                        .reason = p.all_fp32() ? std::string_view() : reason,
                        .requested = p.input,
                        .needs_a = a.requires_grad(),
                        .needs_b = b.requires_grad()},
                       *layer, [&] { return OP::call(arguments...); });
}

constexpr std::string_view kNoContraction = "an outer product sums nothing: fp32";

Tensor run_outer(const Tensor& a, const Tensor& b) {
  return run_unplanned<outer>(kNoContraction, 2.0 * double(a.numel()) * double(b.numel()), a, b, a, b);
}
Tensor run_addr(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return run_unplanned<addr>(kNoContraction, 2.0 * double(a.numel()) * double(b.numel()), a, b, c, a, b, beta, alpha);
}
Tensor run_vecdot(const Tensor& a, const Tensor& b, int64_t dim) {
  return run_unplanned<linalg_vecdot>("dot products of rows run as torch does: fp32", 2.0 * double(a.numel()), a, b, a,
                                      b, dim);
}

}  // namespace

void register_gemm_ops(torch::Library& aten) {
  intercept<linear>(aten, run_linear);
  intercept<matmul>(aten, run_matmul);
  intercept<mm>(aten, run_mm);
  intercept<bmm>(aten, run_bmm);
  intercept<addmm>(aten, run_addmm);
  intercept<baddbmm>(aten, run_baddbmm);
  intercept<mv>(aten, run_mv);
  intercept<dot>(aten, run_dot);
  intercept<addmv>(aten, run_addmv);
  intercept<addbmm>(aten, run_addbmm);
  intercept<outer>(aten, run_outer);
  intercept<addr>(aten, run_addr);
  intercept<linalg_vecdot>(aten, run_vecdot);
  intercept<scaled_dot_product_attention>(aten, run_attention);
}

}  // namespace hpqf::engine
