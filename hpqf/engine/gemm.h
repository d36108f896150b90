// Every op with a GEMM inside runs through run_gemm: decide how, run, report, and follow it into the backward.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <functional>
#include <optional>
#include <string_view>

#include "hpqf/engine/instrument.h"
#include "hpqf/engine/layer.h"
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::engine {

// The backward of y = op(a, b), written out: needed where the two backward GEMMs run in different formats and
// autograd's own node, which computes both from one gradient, cannot serve.
struct BackwardFormulas {
  std::function<at::Tensor(const at::Tensor& grad, const at::Tensor& b)> grad_a;
  std::function<at::Tensor(const at::Tensor& grad, const at::Tensor& a)> grad_b;
  std::function<at::Tensor(const at::Tensor& grad)> grad_bias;
};

// The op once more, on other operands and after the call: what a measurement needs (probe.h).
struct Repeat {
  std::function<at::Tensor(const at::Tensor& a, const at::Tensor& b)> product;  // without bias
  // The change of y when the activations are rounded; empty: it follows from `product`, which is bilinear.
  std::function<at::Tensor(const BlockFormat& format, const Layer& layer)> input_error;
};

struct GemmCall {
  std::string_view op;
  const at::Tensor& a;             // input
  const at::Tensor& b;             // weight, or the second activation
  std::optional<at::Tensor> bias;  // added to the product along axis_y
  int64_t axis_a, axis_b, axis_y;  // contraction axes of the operands; output features of y (dgrad contracts over them)
  bool b_is_weight;
  bool is_linear;         // a weight matrix applied to the last axis of a: torch's scaled and integer GEMMs can run it
  bool b_in_out = false;  // the weight lies [in, out] (y = a @ b), as C++ modules call it; else [out, in]
  double flops;
  // A convolution our integer kernels know: its shape; otherwise why they do not ("" for other ops).
  const kernels::ConvShape* conv = nullptr;
  std::string_view conv_unknown = "";
  c10::function_ref<at::Tensor(const at::Tensor& a, const at::Tensor& b, const std::optional<at::Tensor>& bias)> torch;
  c10::function_ref<std::optional<BackwardFormulas>()> formulas;  // nullopt: this op has none
  c10::function_ref<Repeat()> repeat;
};

// An undefined tensor is none: autograd's custom nodes take an absent tensor, not an undefined one.
inline std::optional<at::Tensor> present(const std::optional<at::Tensor>& t) {
  return t && t->defined() ? t : std::nullopt;
}

at::Tensor run_gemm(const GemmCall& call, Layer& layer);

// Reports an op that ran untouched in its own precision, and follows its backward.
struct Untouched {
  std::string_view op;
  double flops = 0;
  bool is_gemm = false;
  std::string_view reason;  // "": fp32 as planned
  BlockFormat requested;
  bool needs_a = true, needs_b = true;
};
at::Tensor run_untouched(const Untouched& call, Layer& layer, c10::function_ref<at::Tensor()> torch);

// Strict mode: Error naming layer, op and reason when the record differs from the request (or is emulated,
// Strict::native).
void check_strict(const Layer& layer, const OpRecord& record, bool native);

inline bool is_fp32(const BlockFormat& f) { return f.format == Format::fp32; }

// For the backward of nodes without a derivative of their own: Error when one is asked for. `how` ends the sentence
// "second derivatives through layer 'x', which ".
void refuse_second_derivatives(const Layer& layer, const std::string& how);

// Why the engine must leave these operands alone ("" when it need not): fp64, sparse, subclasses, transforms...
std::string_view untouchable(const at::Tensor& a, const at::Tensor& b);

}  // namespace hpqf::engine
