// Ops that compute in fp32 whatever the plan says: softmax, norms, losses, distances, matrix functions. 16-bit
// arguments (from a user's autocast, or a model's own) are cast up for the op; norms and softmax hand back the input's
// type, losses stay fp32.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/ops/batch_norm_ops.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/binary_cross_entropy_with_logits_ops.h>
#include <ATen/ops/cdist_ops.h>
#include <ATen/ops/corrcoef_ops.h>
#include <ATen/ops/cosine_embedding_loss_ops.h>
#include <ATen/ops/cov_ops.h>
#include <ATen/ops/cross_entropy_loss_ops.h>
#include <ATen/ops/ctc_loss_ops.h>
#include <ATen/ops/group_norm_ops.h>
#include <ATen/ops/hinge_embedding_loss_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/instance_norm_ops.h>
#include <ATen/ops/kl_div_ops.h>
#include <ATen/ops/l1_loss_ops.h>
#include <ATen/ops/layer_norm_ops.h>
#include <ATen/ops/linalg_matrix_exp_ops.h>
#include <ATen/ops/linalg_matrix_power_ops.h>
#include <ATen/ops/log_softmax_ops.h>
#include <ATen/ops/margin_ranking_loss_ops.h>
#include <ATen/ops/matrix_exp_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/nll_loss_nd_ops.h>
#include <ATen/ops/poisson_nll_loss_ops.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>
#include <ATen/ops/soft_margin_loss_ops.h>
#include <ATen/ops/softmax_ops.h>
#include <ATen/ops/triplet_margin_loss_ops.h>

#include "hpqf/engine/elementwise.h"
#include "hpqf/engine/ops.h"

namespace hpqf::engine {
namespace {

using at::Tensor;

bool low(const Tensor& t) { return t.defined() && (t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf); }

// An argument of an op; tensors of 16 bits are cast up.
struct Raise {
  Tensor operator()(const Tensor& t) const { return low(t) ? t.to(at::kFloat) : t; }
  std::optional<Tensor> operator()(const std::optional<Tensor>& t) const {
    return t && low(*t) ? std::optional(t->to(at::kFloat)) : t;
  }
  template <class T>
  const T& operator()(const T& other) const {
    return other;
  }
};

enum class Result : uint8_t {
  input_type,     // norms, softmax
  fp32,           // losses
  as_torch_does,  // batch and instance norm write running statistics in place and already accumulate in fp32 inside
};

// An op on our own loops, where those serve (elementwise.h).
template <class OP>
struct Fast {
  template <class... A>
  static std::optional<Tensor> call(Layer*, const A&...) {
    return std::nullopt;
  }
};
template <>
struct Fast<at::_ops::softmax_int> {
  static std::optional<Tensor> call(Layer* layer, const Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype) {
    return fast_softmax(layer, x, dim, dtype, false);
  }
};
template <>
struct Fast<at::_ops::log_softmax_int> {
  static std::optional<Tensor> call(Layer* layer, const Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype) {
    return fast_softmax(layer, x, dim, dtype, true);
  }
};
template <>
struct Fast<at::_ops::layer_norm> {
  static std::optional<Tensor> call(Layer* layer, const Tensor& x, c10::SymIntArrayRef shape,
                                    const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                                    bool) {
    return fast_layer_norm(layer, x, shape, weight, bias, eps);
  }
};

template <class OP, Result kResult, class Signature = typename OP::schema>
struct Rule;

template <class OP, Result kResult, class... A>
struct Rule<OP, kResult, Tensor(A...)> {
  static Tensor call(A... args) {
    OwnKeyOff off;
    Layer* layer = find_layer();
    if (!layer) return OP::call(args...);
    if (auto y = Fast<OP>::call(layer, args...)) return *y;
    AllAutocastOff all;
    const Tensor& input = first(args...);
    const std::string_view reason = low(input) ? "16-bit input computed in fp32 by rule" : "";
    return run_untouched({.op = OP::name + 6, .reason = reason}, *layer, [&]() -> Tensor {
      if constexpr (kResult == Result::as_torch_does) {
        return OP::call(args...);
      } else {
        Tensor y = OP::call(Raise{}(args)...);
        if constexpr (kResult == Result::input_type)
          if (low(input) && y.scalar_type() == at::kFloat && !asks_dtype(args...)) y = y.to(input.scalar_type());
        return y;
      }
    });
  }

 private:
  template <class First, class... Rest>
  static const Tensor& first(const First& f, const Rest&...) {
    return f;
  }
  // softmax(x, dim, dtype): the caller's dtype wins.
  static bool asks(const std::optional<at::ScalarType>& dtype) { return dtype.has_value(); }
  template <class T>
  static bool asks(const T&) {
    return false;
  }
  static bool asks_dtype(const A&... args) { return (asks(args) || ...); }
};

template <Result kResult, class... OPs>
void intercept_rules(torch::Library& aten) {
  (intercept<OPs>(aten, Rule<OPs, kResult>::call), ...);
}

}  // namespace

void register_rule_ops(torch::Library& aten) {
  using namespace at::_ops;  // NOLINT: only names of op structs
  intercept_rules<Result::input_type, softmax_int, log_softmax_int, layer_norm, group_norm, rms_norm>(aten);
  intercept_rules<Result::as_torch_does, batch_norm, instance_norm>(aten);
  // Products inside these cancel (distances of near points, covariances) or compound (powers): torch's autocast keeps
  // such ops in fp32 too.
  intercept_rules<Result::fp32, cdist, cov, corrcoef, matrix_exp, linalg_matrix_exp, linalg_matrix_power>(aten);
  intercept_rules<Result::fp32, cross_entropy_loss, nll_loss_nd, mse_loss, l1_loss, smooth_l1_loss, huber_loss, kl_div,
                  binary_cross_entropy, binary_cross_entropy_with_logits, soft_margin_loss, poisson_nll_loss,
                  hinge_embedding_loss, margin_ranking_loss, triplet_margin_loss, cosine_embedding_loss,
                  ctc_loss_IntList, ctc_loss_Tensor>(aten);
}

}  // namespace hpqf::engine
