#include "hpqf/engine/elementwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "hpqf/engine/census.h"
#include "hpqf/engine/gemm.h"
#include "hpqf/engine/instrument.h"
#include "hpqf/engine/node_state.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/scope.h"
#include "hpqf/kernels/activation.h"
#include "hpqf/kernels/layer_norm.h"
#include "hpqf/kernels/softmax.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;
using at::Tensor;
using kernels::Activation;

// Where own_kernels is set the CPU has what our vector loops need.
bool serves(const Layer* layer, const Tensor& x) {
  return layer && layer->runtime->own_kernels && rounds_in_kernel(x) && x.is_contiguous() && x.dim() > 0 &&
         x.numel() > 0 && transform_active(x, x).empty();
}

int64_t columns(const Tensor& x) { return x.size(-1); }
int64_t rows(const Tensor& x) { return x.numel() / x.size(-1); }

// What a node must report in its backward.
struct Reported {
  LayerRef layer;
  OpRecord record;
};
std::shared_ptr<Reported> reported(Layer* layer, std::string_view op) {
  return std::make_shared<Reported>(
      Reported{ref(layer), {.op = op, .implementation = "hpqf.elementwise", .is_gemm = false}});
}

template <class Node, class... A>
Tensor run(Layer* layer, std::string_view op, A&&... args) {
  AllAutocastOff off;
  auto report = reported(layer, op);
  const int64_t start = now_ns();
  Tensor y = Node::apply(std::forward<A>(args)..., report);
  emit_forward(*layer, report->record, now_ns() - start);
  return y;
}

// The end of every backward: times it and reports.
class BackwardTimer {
 public:
  explicit BackwardTimer(ag::AutogradContext* ctx) : reported_(NodeState<Reported>::of(*ctx)) {}
  ~BackwardTimer() { emit_backward(*reported_.layer, reported_.record, true, false, now_ns() - start_); }

 private:
  AllAutocastOff off_;
  const CountedRegion counted_;
  const Reported& reported_;
  const int64_t start_ = now_ns();
};

// f'(x) g in differentiable ops. torch has no derivative of silu_backward itself.
Tensor by_torch(Activation function, const Tensor& g, const Tensor& x) {
  if (function != Activation::silu) return at::gelu_backward(g, x, function == Activation::gelu_tanh ? "tanh" : "none");
  const Tensor s = x.sigmoid();
  return g * s * (1 + x * (1 - s));
}

struct ActivationNode : ag::Function<ActivationNode> {
  static Tensor forward(ag::AutogradContext* ctx, const Tensor& x, int64_t function,
                        std::shared_ptr<Reported> reported) {
    Tensor y = at::empty_like(x);
    kernels::activation(kernels::ActivationForward{Activation(function), rows(x), columns(x), x.const_data_ptr<float>(),
                                                   nullptr, y.mutable_data_ptr<float>()});
    ctx->save_for_backward({x});
    ctx->saved_data["function"] = function;
    NodeState<Reported>::save(*ctx, std::move(reported));
    return y;
  }
  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    const BackwardTimer timer(ctx);
    const Tensor x = ctx->get_saved_variables()[0];
    const auto function = Activation(ctx->saved_data["function"].toInt());
    if (!grads[0].defined()) return {Tensor(), Tensor(), Tensor()};
    if (at::GradMode::is_enabled() || !rounds_in_kernel(grads[0]))
      return {by_torch(function, grads[0], x), Tensor(), Tensor()};
    const Tensor g = grads[0].contiguous();
    Tensor dx = at::empty_like(x);
    kernels::activation(kernels::ActivationBackward{function, rows(x), columns(x), x.const_data_ptr<float>(), nullptr,
                                                    g.const_data_ptr<float>(), dx.mutable_data_ptr<float>()});
    return {dx, Tensor(), Tensor()};
  }
};

struct SoftmaxNode : ag::Function<SoftmaxNode> {
  static Tensor forward(ag::AutogradContext* ctx, const Tensor& x, bool log, std::shared_ptr<Reported> reported) {
    Tensor y = at::empty_like(x);
    kernels::softmax(kernels::SoftmaxForward{rows(x), columns(x), log, 1.0f, x.const_data_ptr<float>(),
                                             y.mutable_data_ptr<float>()});
    ctx->save_for_backward({y});
    ctx->saved_data["log"] = log;
    NodeState<Reported>::save(*ctx, std::move(reported));
    return y;
  }
  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    const BackwardTimer timer(ctx);
    const Tensor y = ctx->get_saved_variables()[0];
    const bool log = ctx->saved_data["log"].toBool();
    if (!grads[0].defined()) return {Tensor(), Tensor(), Tensor()};
    if (at::GradMode::is_enabled() || !rounds_in_kernel(grads[0])) {
      return {log ? at::_log_softmax_backward_data(grads[0], y, -1, y.scalar_type())
                  : at::_softmax_backward_data(grads[0], y, -1, y.scalar_type()),
              Tensor(), Tensor()};
    }
    const Tensor g = grads[0].contiguous();
    Tensor dx = at::empty_like(y);
    kernels::softmax(kernels::SoftmaxBackward{rows(y), columns(y), log, 1.0f, y.const_data_ptr<float>(),
                                              g.const_data_ptr<float>(), dx.mutable_data_ptr<float>()});
    return {dx, Tensor(), Tensor()};
  }
};

const float* data_or_null(const std::optional<Tensor>& t) { return t ? t->const_data_ptr<float>() : nullptr; }

struct LayerNormNode : ag::Function<LayerNormNode> {
  static Tensor forward(ag::AutogradContext* ctx, const Tensor& x, const std::optional<Tensor>& weight,
                        const std::optional<Tensor>& bias, double eps, std::shared_ptr<Reported> reported) {
    Tensor y = at::empty_like(x);
    auto sizes = x.sizes().vec();
    sizes.back() = 1;
    Tensor mean = at::empty(sizes, x.options()), rstd = at::empty(sizes, x.options());
    kernels::layer_norm(kernels::LayerNormForward{rows(x), columns(x), eps, x.const_data_ptr<float>(),
                                                  data_or_null(weight), data_or_null(bias), y.mutable_data_ptr<float>(),
                                                  mean.mutable_data_ptr<float>(), rstd.mutable_data_ptr<float>()});
    ctx->save_for_backward({x, weight.value_or(Tensor()), bias.value_or(Tensor()), mean, rstd});
    NodeState<Reported>::save(*ctx, std::move(reported));
    return y;
  }
  static ag::variable_list backward(ag::AutogradContext* ctx, ag::variable_list grads) {
    const BackwardTimer timer(ctx);
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3], &rstd = saved[4];
    Tensor dx, dweight, dbias, none;
    if (!grads[0].defined()) return {dx, dweight, dbias, none, none};
    size_t edge = 0;  // absent tensors have none
    const bool wants_x = ctx->needs_input_grad(edge++);
    const bool wants_weight = weight.defined() && ctx->needs_input_grad(edge++);
    const bool wants_bias = bias.defined() && ctx->needs_input_grad(edge++);
    if (at::GradMode::is_enabled() || !rounds_in_kernel(grads[0])) {
      auto optional = [](const Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; };
      std::tie(dx, dweight, dbias) = at::native_layer_norm_backward(
          grads[0], x, {columns(x)}, mean, rstd, optional(weight), optional(bias), {wants_x, wants_weight, wants_bias});
      return {dx, dweight, dbias, none, none};
    }
    const Tensor g = grads[0].contiguous();
    auto wanted = [](bool want, const Tensor& like) { return want ? at::empty_like(like) : Tensor(); };
    dx = wanted(wants_x, x), dweight = wanted(wants_weight, weight), dbias = wanted(wants_bias, bias);
    auto out = [](const Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; };
    const Tensor scratch = wants_weight || wants_bias
                               ? at::empty({kernels::layer_norm_scratch(rows(x), columns(x))}, x.options())
                               : Tensor();
    kernels::layer_norm(kernels::LayerNormBackward{
        rows(x), columns(x), x.const_data_ptr<float>(), mean.const_data_ptr<float>(), rstd.const_data_ptr<float>(),
        weight.defined() ? weight.const_data_ptr<float>() : nullptr, g.const_data_ptr<float>(), out(dx), out(dweight),
        out(dbias), out(scratch)});
    return {dx, dweight, dbias, none, none};
  }
};

bool plain_vector(const std::optional<Tensor>& t, int64_t size) {
  return !t || (rounds_in_kernel(*t) && t->is_contiguous() && t->numel() == size);
}

}  // namespace

std::optional<Tensor> fast_gelu(Layer* layer, const Tensor& x, bool tanh) {
  if (!serves(layer, x)) return std::nullopt;
  return run<ActivationNode>(layer, "gelu", x, int64_t(tanh ? Activation::gelu_tanh : Activation::gelu));
}

std::optional<Tensor> fast_silu(Layer* layer, const Tensor& x) {
  if (!serves(layer, x)) return std::nullopt;
  return run<ActivationNode>(layer, "silu", x, int64_t(Activation::silu));
}

std::optional<Tensor> fast_softmax(Layer* layer, const Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype,
                                   bool log) {
  if (!serves(layer, x) || (dim != -1 && dim != x.dim() - 1) || (dtype && *dtype != at::kFloat)) return std::nullopt;
  return run<SoftmaxNode>(layer, log ? "log_softmax" : "softmax", x, log);
}

std::optional<Tensor> fast_layer_norm(Layer* layer, const Tensor& x, c10::SymIntArrayRef shape,
                                      const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                      double eps) {
  if (!serves(layer, x) || shape.size() != 1 || shape[0] != columns(x)) return std::nullopt;
  const auto w = present(weight), b = present(bias);
  if (!plain_vector(w, columns(x)) || !plain_vector(b, columns(x))) return std::nullopt;
  return run<LayerNormNode>(layer, "layer_norm", x, w, b, eps);
}

}  // namespace hpqf::engine
