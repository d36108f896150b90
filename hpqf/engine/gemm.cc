#include "hpqf/engine/gemm.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/implementation.h"
#include "hpqf/engine/integer_conv.h"
#include "hpqf/engine/integer_gemm.h"
#include "hpqf/engine/native_gemm.h"
#include "hpqf/engine/probe.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/scope.h"
#include "hpqf/engine/split_gemm.h"

namespace hpqf::engine {
namespace {

std::string display_name(const Layer& layer) { return layer.name.empty() ? "(model)" : layer.name; }

[[noreturn]] void strict_error(const Layer& layer, const OpRecord& r, bool emulated) {
  throw Error(fmt::format("strict: layer '{}', op {}: {} x {} (gradients {} / {})", display_name(layer), r.op,
                          to_string(r.requested_a), to_string(r.requested_b), to_string(r.requested_dgrad),
                          to_string(r.requested_wgrad)),
              fmt::format("what would run is {} x {} by '{}'{}{}", to_string(r.a), to_string(r.b), r.implementation,
                          emulated ? " (emulated: right numbers, no speed)" : "",
                          r.reason.empty() ? "" : ", because " + std::string(r.reason)),
              "plan this layer in a format this device runs, or leave strict mode to see it in the audit instead");
}

// Bias goes on after the product, so that its gradient is the sum of the unrounded output gradient.
void add_bias(at::Tensor& y, const at::Tensor& bias, int64_t axis_y) {
  if (axis_y == -1) {
    y.add_(bias);
    return;
  }
  c10::SmallVector<int64_t, 5> shape(size_t(-axis_y), 1);
  shape[0] = bias.numel();
  y.add_(bias.view(shape));
}

int64_t rows(const at::Tensor& t) { return t.dim() == 0 || t.size(-1) == 0 ? 0 : t.numel() / t.size(-1); }

void log_shape(const GemmCall& call, const at::Tensor& a, Layer& layer) {
  const bool bias = call.bias && call.bias->defined();
  if (call.is_linear) {
    const int64_t in = call.b.size(!call.b_in_out), out = call.b.size(call.b_in_out);
    layer.runtime->shapes.record(layer.name, {"linear", {rows(a), in}, {out, in}, {}, bias, call.flops});
  } else if (call.conv) {
    const kernels::ConvShape& s = *call.conv;
    layer.runtime->shapes.record(
        layer.name, {"conv",
                     {s.batch, s.in_channels, s.height, s.width},
                     {s.out_channels, s.in_channels / s.groups, s.kernel_h, s.kernel_w},
                     {s.stride_h, s.stride_w, s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, s.groups},
                     bias,
                     call.flops});
  }
}

}  // namespace

void check_strict(const Layer& layer, const OpRecord& r, bool native) {
  const Strict strict = layer.runtime->strict;
  if (strict == Strict::off) return;
  const bool same =
      r.a == r.requested_a && r.b == r.requested_b && r.dgrad == r.requested_dgrad && r.wgrad == r.requested_wgrad;
  if (!same || (strict == Strict::native && !native)) strict_error(layer, r, !native);
}

void refuse_second_derivatives(const Layer& layer, const std::string& how) {
  if (!at::GradMode::is_enabled()) return;
  throw Error("second derivatives through layer '" + layer.name + "', which " + how,
              "second derivatives in fp32, bf16 and fp16",
              "run the sensitivity pass under engine::Passthrough (Python: hpqf.passthrough())");
}

std::string_view untouchable(const at::Tensor& a, const at::Tensor& b) {
  for (const auto* t : {&a, &b}) {
    if (!t->defined()) continue;
    if (t->is_complex()) return "complex tensors run as given";
    if (!t->is_floating_point()) return "integer tensors run as given";
    if (t->scalar_type() == at::kDouble) return "fp64 tensors run in fp64";
    if (t->layout() != at::kStrided || t->is_nested()) return "sparse, nested and opaque layouts run as given";
    if (t->is_meta() || t->unsafeGetTensorImpl()->is_python_dispatch())
      return "a tensor subclass or meta tensor runs as given";
  }
  if (b.defined() && b.scalar_type() != at::kFloat)
    return "16-bit tensors of the model itself run as given: there is no fp32 master to round";
  return transform_active(a, b);
}

at::Tensor run_untouched(const Untouched& call, Layer& layer, c10::function_ref<at::Tensor()> torch) {
  OpRecord r{.op = call.op,
             .requested_a = call.requested,
             .requested_b = call.requested,
             .requested_dgrad = call.requested,
             .requested_wgrad = call.requested,
             .implementation = "torch",
             .reason = call.reason,
             .flops = call.flops,
             .is_gemm = call.is_gemm};
  check_strict(layer, r, true);
  const uint64_t sequence = at::sequence_number::peek();
  const int64_t start = now_ns();
  at::Tensor y = torch();
  emit_forward(layer, r, now_ns() - start);
  if (y.requires_grad()) follow_backward(y, sequence, ref(&layer), r, {}, -1, call.needs_a, call.needs_b);
  return y;
}

at::Tensor run_gemm(const GemmCall& call, Layer& layer) {
  const LayerPrecision& p = layer.precision();
  OpRecord r{.op = call.op, .flops = call.flops};
  r.requested_a = p.input;
  r.requested_b = call.b_is_weight ? p.weight : p.input;
  r.requested_dgrad = p.dgrad;
  r.requested_wgrad =
      call.b_is_weight ? p.wgrad : p.dgrad;  // both operands of an activation product get input gradients
  const uint64_t sequence = at::sequence_number::peek();
  const bool fp32 = p.all_fp32();

  if (std::string_view why = untouchable(call.a, call.b); !why.empty()) {
    AllAutocastOff off;
    return run_untouched(
        {call.op, call.flops, true, why, r.requested_a, call.a.requires_grad(), call.b.requires_grad()}, layer,
        [&] { return call.torch(call.a, call.b, call.bias); });
  }

  AllAutocastOff off;
  // Upstream autocast may hand over 16-bit activations; autograd records the cast.
  const at::Tensor a = call.a.scalar_type() == call.b.scalar_type() ? call.a : call.a.to(call.b.scalar_type());
  if (Probe* probe = layer.runtime->probe) return run_probed(*probe, call, a, layer);
  const bool grad_mode = at::GradMode::is_enabled();
  const bool needs_a = grad_mode && a.requires_grad(), needs_b = grad_mode && call.b.requires_grad();

  const GemmImplementation* implementation = &gemm_implementations().front();
  if (!fp32) {
    GemmProblem problem{.device = a.device().type(),
                        .a = r.requested_a,
                        .b = r.requested_b,
                        .dgrad = r.requested_dgrad,
                        .wgrad = r.requested_wgrad,
                        .b_is_weight = call.b_is_weight,
                        .is_linear = call.is_linear,
                        .needs_grad = needs_a || needs_b,
                        .conv = call.conv,
                        .conv_unknown = call.conv_unknown};
    if (call.is_linear)
      problem.m = rows(a), problem.n = call.b.size(call.b_in_out), problem.k = call.b.size(!call.b_in_out);
    Choice choice = choose(problem, layer.runtime->force);
    implementation = choice.implementation;
    if (!choice.reason.empty()) r.reason = layer.runtime->intern(std::move(choice.reason));
  }
  r.implementation = implementation->name;
  r.a = r.requested_a, r.b = r.requested_b, r.dgrad = r.requested_dgrad, r.wgrad = r.requested_wgrad;
  if (implementation->method == Method::integer) name_integer_formats(r, call.conv != nullptr, layer);
  check_strict(layer, r, implementation->native);

  const int64_t start = now_ns();
  if (implementation->method == Method::torch_fp32) {
    if (layer.runtime->log_shapes) log_shape(call, a, layer);
    at::Tensor y = call.torch(a, call.b, call.bias);
    emit_forward(layer, r, now_ns() - start);
    if (y.requires_grad()) follow_backward(y, sequence, ref(&layer), r, {}, -1, needs_a, needs_b);
    return y;
  }

  const LayerRef owner = ref(&layer);
  if (implementation->method == Method::torch_cast) {
    at::Tensor y = run_cast(call, a, r.a.format);
    emit_forward(layer, r, now_ns() - start);
    follow_backward(y, sequence, owner, r, {}, -1, needs_a, needs_b);
    return y;
  }
  if (implementation->method == Method::torch_scaled || implementation->method == Method::torch_int)
    return run_scaled(call, a, owner, r);  // its own autograd node reports both passes
  if (implementation->method == Method::integer)
    return call.conv ? run_integer_conv(call, a, owner, r) : run_integer(call, a, owner, r);

  const bool differ = r.dgrad != r.wgrad || r.dgrad.format == Format::fp32;
  if ((needs_a || needs_b) && differ && call.b_is_weight)
    if (auto formulas = call.formulas()) return run_split(call, a, owner, r, std::move(*formulas));

  at::Tensor qa = round_ste(a, r.a, call.axis_a, owner, plan::Role::input);
  at::Tensor qb = call.b_is_weight ? round_weight(call.b, r.b, call.axis_b, owner)
                                   : round_ste(call.b, r.b, call.axis_b, owner, plan::Role::input);
  const bool bias_later =
      call.bias && call.bias->defined() && grad_mode && call.bias->requires_grad() && r.dgrad.format != Format::fp32;
  at::Tensor y = call.torch(qa, qb, bias_later ? std::nullopt : call.bias);
  follow_backward(y, sequence, owner, r, r.dgrad, call.axis_y, needs_a, needs_b);
  if (bias_later) add_bias(y, *call.bias, call.axis_y);
  emit_forward(layer, r, now_ns() - start);
  return y;
}

}  // namespace hpqf::engine
