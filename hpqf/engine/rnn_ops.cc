// Kernels of the recurrent ops: under a low plan through run_rnn, else torch's own, timed and followed.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/ops/gru_ops.h>
#include <ATen/ops/lstm_ops.h>
#include <ATen/ops/rnn_relu_ops.h>
#include <ATen/ops/rnn_tanh_ops.h>

#include "hpqf/base/error.h"
#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/ops.h"
#include "hpqf/engine/probe.h"
#include "hpqf/engine/rnn.h"
#include "hpqf/engine/rnn_layer.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using at::TensorList;
using namespace at::_ops;  // NOLINT: only names of op structs

// Both products of every weight matrix with every row (time step x sequence) that meets it.
double rnn_flops(const RnnCall& call) {
  const double features = call.input.dim() > 0 ? double(call.input.size(-1)) : 1;
  const double rows = features > 0 ? double(call.input.numel()) / features : 0;
  double weights = 0;
  for (const auto& p : call.params)
    if (p.dim() == 2) weights += double(p.numel());
  return 2 * rows * weights;
}

void log_shape(const RnnCall& call, Layer& layer) {
  const Tensor& x = call.input;
  const int64_t steps = call.batch_sizes ? call.batch_sizes->size(0) : x.size(call.batch_first ? 1 : 0);
  const int64_t rows = x.numel() / std::max<int64_t>(x.size(-1), 1);
  layer.runtime->shapes.record(
      layer.name, {op_name(call.cell),
                   {steps, std::max<int64_t>(rows / std::max<int64_t>(steps, 1), 1), x.size(-1)},
                   {call.num_layers, call.state[0].size(-1), call.bidirectional ? 2 : 1, gates_of(call.cell)},
                   {},
                   call.has_biases,
                   rnn_flops(call)});
}

// `torch` returns the op's whole tuple; run_rnn's third tensor is dropped for cells without one.
template <class Tuple, class Torch>
Tuple run(const RnnCall& call, Torch torch) {
  OwnKeyOff off;
  Layer* layer = call.params.empty() ? nullptr : find_layer(call.params[0]);
  if (!layer) return torch();
  AllAutocastOff all;
  const LayerPrecision& p = layer->precision();
  RnnCall raised = call;
  if (call.input.scalar_type() != call.params[0].scalar_type() && call.params[0].scalar_type() == at::kFloat)
    raised.input = call.input.to(at::kFloat);  // upstream autocast may hand over 16-bit activations
  std::string why(untouchable(raised.input, call.params[0]));
  if (Probe* probe = layer->runtime->probe;
      probe && why.empty() && rnn_refusal(raised, plan::uniform_precision("bf16")).empty()) {
    auto [y, h, c] = run_probed_rnn(*probe, raised, *layer);
    if constexpr (std::tuple_size_v<Tuple> == 3)
      return {y, h, c};
    else
      return {y, h};
  }
  if (why.empty() && !p.all_fp32()) why = rnn_refusal(raised, p);
  if (why.empty() && !p.all_fp32()) {
    OpRecord r{.op = op_name(call.cell),
               .requested_a = p.input,
               .requested_b = p.weight,
               .requested_dgrad = p.dgrad,
               .requested_wgrad = p.wgrad,
               .a = p.input,
               .b = p.weight,
               .dgrad = p.dgrad,
               .wgrad = p.wgrad,
               .implementation = "emulated"};
    const bool integer = runs_as_integers(p, *layer);
    if (integer) {
      r.implementation = "hpqf.integer";
      r.a = r.dgrad = r.wgrad = unsigned_side(p.input);
      r.reason = integer_reason(p.input);
    }
    check_strict(*layer, r, integer);
    auto [y, h, c] = run_rnn(raised, ref(layer));
    if constexpr (std::tuple_size_v<Tuple> == 3)
      return {y, h, c};
    else
      return {y, h};
  }

  if (layer->runtime->log_shapes && why.empty() && rnn_refusal(raised, p).empty()) log_shape(raised, *layer);
  Tuple result;
  const std::string_view reason = why.empty() ? std::string_view() : layer->runtime->intern(why);
  run_untouched({.op = op_name(call.cell),
                 .flops = rnn_flops(call),
                 .is_gemm = true,
                 .reason = reason,
                 .requested = p.input,
                 .needs_a = call.input.requires_grad(),
                 .needs_b = call.params[0].requires_grad()},
                *layer, [&] {
                  result = torch();
                  return std::get<0>(result);
                });
  return result;
}

std::tuple<Tensor, Tensor, Tensor> lstm_plain(const Tensor& x, TensorList hx, TensorList params, bool biases,
                                              int64_t layers, double dropout, bool train, bool bidirectional,
                                              bool batch_first) {
  RnnCall call{Cell::lstm, x, std::nullopt, hx, params, biases, layers, dropout, train, bidirectional, batch_first};
  return run<std::tuple<Tensor, Tensor, Tensor>>(call, [&] {
    return lstm_input::call(x, hx, params, biases, layers, dropout, train, bidirectional, batch_first);
  });
}
std::tuple<Tensor, Tensor, Tensor> lstm_packed(const Tensor& data, const Tensor& sizes, TensorList hx,
                                               TensorList params, bool biases, int64_t layers, double dropout,
                                               bool train, bool bidirectional) {
  RnnCall call{Cell::lstm, data, sizes, hx, params, biases, layers, dropout, train, bidirectional, false};
  return run<std::tuple<Tensor, Tensor, Tensor>>(
      call, [&] { return lstm_data::call(data, sizes, hx, params, biases, layers, dropout, train, bidirectional); });
}

template <class OP, Cell kCell>
std::tuple<Tensor, Tensor> plain(const Tensor& x, const Tensor& h, TensorList params, bool biases, int64_t layers,
                                 double dropout, bool train, bool bidirectional, bool batch_first) {
  RnnCall call{kCell, x, std::nullopt, h, params, biases, layers, dropout, train, bidirectional, batch_first};
  return run<std::tuple<Tensor, Tensor>>(
      call, [&] { return OP::call(x, h, params, biases, layers, dropout, train, bidirectional, batch_first); });
}
template <class OP, Cell kCell>
std::tuple<Tensor, Tensor> packed(const Tensor& data, const Tensor& sizes, const Tensor& h, TensorList params,
                                  bool biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  RnnCall call{kCell, data, sizes, h, params, biases, layers, dropout, train, bidirectional, false};
  return run<std::tuple<Tensor, Tensor>>(
      call, [&] { return OP::call(data, sizes, h, params, biases, layers, dropout, train, bidirectional); });
}

}  // namespace

void register_rnn_ops(torch::Library& aten) {
  intercept<lstm_input>(aten, lstm_plain);
  intercept<lstm_data>(aten, lstm_packed);
  intercept<gru_input>(aten, plain<gru_input, Cell::gru>);
  intercept<gru_data>(aten, packed<gru_data, Cell::gru>);
  intercept<rnn_tanh_input>(aten, plain<rnn_tanh_input, Cell::rnn_tanh>);
  intercept<rnn_tanh_data>(aten, packed<rnn_tanh_data, Cell::rnn_tanh>);
  intercept<rnn_relu_input>(aten, plain<rnn_relu_input, Cell::rnn_relu>);
  intercept<rnn_relu_data>(aten, packed<rnn_relu_data, Cell::rnn_relu>);
}

}  // namespace hpqf::engine
