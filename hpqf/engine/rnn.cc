#include "hpqf/engine/rnn.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "hpqf/engine/instrument.h"
#include "hpqf/engine/rnn_layer.h"
#include "hpqf/engine/rnn_saved.h"
#include "hpqf/engine/rounding.h"

namespace hpqf::engine {
namespace {

std::vector<RnnStep> schedule(const RnnCall& call, const at::Tensor& input, bool reverse) {
  std::vector<RnnStep> steps;
  int64_t offset = 0;
  auto add = [&](int64_t rows) {
    steps.push_back({offset, rows});
    offset += rows;
  };
  if (call.batch_sizes) {
    const at::Tensor sizes = call.batch_sizes->contiguous();
    const int64_t* rows = sizes.const_data_ptr<int64_t>();
    for (int64_t t = 0; t < sizes.numel(); ++t) add(rows[t]);
  } else {
    for (int64_t t = 0; t < input.size(0); ++t) add(input.size(1));
  }
  if (reverse) std::reverse(steps.begin(), steps.end());
  return steps;
}

RnnWeights weights_of(const RnnCall& call, int64_t index) {
  const int64_t first = index * (call.has_biases ? 4 : 2);
  RnnWeights w{call.params[first], call.params[first + 1], std::nullopt, std::nullopt};
  if (call.has_biases) {
    w.b_ih = call.params[first + 2];
    w.b_hh = call.params[first + 3];
  }
  return w;
}

// The GEMM operand of all directions of a layer: [sum, I], contiguous.
at::Tensor rounded_input(const at::Tensor& x, const LayerPrecision& rounding, const Layer& layer) {
  at::NoGradGuard no_grad;
  return round(x, rounding.input, -1, layer, Role::input).contiguous().view({-1, x.size(-1)});
}

void emit_forward_event(const RnnCall& call, const at::Tensor& output, const Layer& layer,
                        const LayerPrecision& precision, bool integer, int64_t nanoseconds) {
  if (!layer.runtime->events) return;
  const int64_t stride = call.has_biases ? 4 : 2;
  const double rows = output.numel() / std::max<int64_t>(output.size(-1), 1);
  double flops = 0, elements = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(call.params.size()); i += stride) {
    const double gates = call.params[i].size(0), columns = call.params[i].size(1) + call.params[i + 1].size(1);
    flops += 2 * rows * gates * columns;
    elements += rows * columns + gates * columns + rows * call.params[i + 1].size(1);
  }
  emit_rnn_event(layer, call.cell, integer, observe::Pass::forward, precision.input, precision.weight, flops,
                 sizeof(float) * elements, nanoseconds);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> run_rnn(const RnnCall& call, const LayerRef& layer) {
  const auto start = now_ns();
  const LayerPrecision& precision = layer->precision();
  const bool integer = runs_as_integers(precision, *layer);
  const int64_t directions = call.bidirectional ? 2 : 1;
  const bool padded = !call.batch_sizes, lstm = call.cell == Cell::lstm;
  at::Tensor x = padded && call.batch_first ? call.input.transpose(0, 1) : call.input;

  c10::intrusive_ptr<RnnNode> nodes[2];
  for (int64_t d = 0; d < directions; ++d) {
    nodes[d] = c10::make_intrusive<RnnNode>();
    nodes[d]->cell = call.cell;
    nodes[d]->layer = layer;
    nodes[d]->precision = &precision;
    nodes[d]->integer = integer;
    nodes[d]->steps = schedule(call, x, d == 1);
  }
  const auto h0 = call.state[0].unbind(0);
  const auto c0 = lstm ? call.state[1].unbind(0) : std::vector<at::Tensor>();
  std::vector<at::Tensor> h_n, c_n;
  for (int64_t l = 0; l < call.num_layers; ++l) {
    const at::Tensor x_rounded = rounded_input(x, nodes[0]->rounding(), *layer);
    std::vector<at::Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t index = l * directions + d;
      auto r = run_rnn_layer(nodes[d], x, x_rounded, h0[index], lstm ? std::optional(c0[index]) : std::nullopt,
                             weights_of(call, index));
      outputs.push_back(r.output);
      h_n.push_back(r.h_n);
      if (lstm) c_n.push_back(r.c_n);
    }
    x = directions == 2 ? at::cat(outputs, -1) : outputs[0];
    if (call.dropout != 0 && call.train && l < call.num_layers - 1) x = at::dropout(x, call.dropout, /*train=*/true);
  }
  emit_forward_event(call, x, *layer, precision, integer, now_ns() - start);
  if (padded && call.batch_first) x = x.transpose(0, 1);
  return {x, at::stack(h_n, 0), lstm ? at::stack(c_n, 0) : at::Tensor()};
}

}  // namespace hpqf::engine
