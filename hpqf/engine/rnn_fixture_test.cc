#include "hpqf/engine/rnn_fixture_test.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

namespace hpqf::engine::testing {
namespace {

at::Generator generator(uint64_t seed) { return at::detail::createCPUGenerator(seed); }

at::Tensor cast(const at::Tensor& t, const BlockFormat& format) {
  switch (format.format) {
    case Format::fp32:
      return t;
    case Format::bf16:
      return t.to(at::kBFloat16).to(at::kFloat);
    case Format::fp16:
      return t.to(at::kHalf).to(at::kFloat);
    default:
      throw std::logic_error("the oracle casts to 16 bits floating only");
  }
}

// x W^T with the roundings of a plan, straight through.
struct PlannedProduct : torch::autograd::Function<PlannedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w,
                            const LayerPrecision* p) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["p"] = reinterpret_cast<int64_t>(p);
    return at::matmul(cast(x, p->input), cast(w, p->weight).t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const auto* p = reinterpret_cast<const LayerPrecision*>(ctx->saved_data["p"].toInt());
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &w = saved[1], &g = grads[0];
    const at::Tensor dx =
        p->dgrad.format == Format::fp32 ? at::matmul(g, w) : at::matmul(cast(g, p->dgrad), cast(w, p->weight));
    const at::Tensor dw =
        p->wgrad.format == Format::fp32 ? at::matmul(g.t(), x) : at::matmul(cast(g, p->wgrad).t(), cast(x, p->input));
    return {dx, dw, at::Tensor()};
  }
};

// One step of one sequence: x [1, I], h and c [1, H].
void step(Cell cell, const at::Tensor& x, at::Tensor& h, at::Tensor& c, const std::vector<at::Tensor>& w,
          const LayerPrecision* p) {
  at::Tensor gx = PlannedProduct::apply(x, w[0], p), gh = PlannedProduct::apply(h, w[1], p);
  if (w.size() > 2) {
    gx = gx + w[2];
    gh = gh + w[3];
  }
  if (cell == Cell::lstm) {
    const auto g = (gx + gh).chunk(4, 1);
    c = at::sigmoid(g[1]) * c + at::sigmoid(g[0]) * at::tanh(g[2]);
    h = at::sigmoid(g[3]) * at::tanh(c);
  } else if (cell == Cell::gru) {
    const auto a = gx.chunk(3, 1), b = gh.chunk(3, 1);
    const at::Tensor z = at::sigmoid(a[1] + b[1]), n = at::tanh(a[2] + at::sigmoid(a[0] + b[0]) * b[2]);
    h = (1 - z) * n + z * h;
  } else {
    h = cell == Cell::rnn_tanh ? at::tanh(gx + gh) : at::relu(gx + gh);
  }
}

}  // namespace

Numbers numbers(const Shape& s, uint64_t seed) {
  auto gen = generator(seed);
  auto random = [&](at::IntArrayRef sizes, double spread) {
    return (at::randn(sizes, gen) * spread).detach().set_requires_grad(true);
  };
  Numbers n;
  // About torch's own initialisation: larger weights make the recurrence chaotic, and every comparison with it.
  const double scale = 0.7 / std::sqrt(double(s.hidden));
  const int64_t gates = s.cell == Cell::lstm ? 4 : s.cell == Cell::gru ? 3 : 1, H = s.hidden, D = s.directions();
  if (!s.batch_sizes.empty()) {
    int64_t total = 0;
    for (int64_t rows : s.batch_sizes) total += rows;
    n.batch_sizes = at::tensor(s.batch_sizes);
    n.input = random({total, s.inputs}, 1);
  } else {
    n.input = s.batch_first ? random({s.batch, s.steps, s.inputs}, 1) : random({s.steps, s.batch, s.inputs}, 1);
  }
  for (int i = 0; i < (s.cell == Cell::lstm ? 2 : 1); ++i) n.state.push_back(random({s.layers * D, s.batch, H}, 0.5));
  for (int64_t i = 0; i < s.layers * D; ++i) {
    n.params.push_back(random({gates * H, i < D ? s.inputs : D * H}, scale));
    n.params.push_back(random({gates * H, H}, scale));
    for (int b = 0; b < (s.biases ? 2 : 0); ++b) n.params.push_back(random({gates * H}, scale));
  }
  return n;
}

RnnCall call_of(const Shape& s, const Numbers& n) {
  RnnCall call;
  call.cell = s.cell;
  call.input = n.input;
  call.batch_sizes = n.batch_sizes;
  call.state = n.state;
  call.params = n.params;
  call.has_biases = s.biases;
  call.num_layers = s.layers;
  call.dropout = s.dropout;
  call.train = true;
  call.bidirectional = s.bidirectional;
  call.batch_first = s.batch_first;
  return call;
}

std::vector<at::Tensor> ours(const Shape& s, const Numbers& n, const LayerRef& layer) {
  const RnnCall call = call_of(s, n);
  EXPECT_EQ("", rnn_refusal(call, layer->precision()));
  auto [output, h_n, c_n] = run_rnn(call, layer);
  if (s.cell == Cell::lstm) return {output, h_n, c_n};
  EXPECT_FALSE(c_n.defined());
  return {output, h_n};
}

std::vector<at::Tensor> torch_op(const Shape& s, const Numbers& n, const LayerRef&) {
  const at::TensorList params = n.params, state = n.state;
  if (s.cell == Cell::lstm) {
    auto [a, b, c] =
        n.batch_sizes
            ? at::lstm(n.input, *n.batch_sizes, state, params, s.biases, s.layers, s.dropout, true, s.bidirectional)
            : at::lstm(n.input, state, params, s.biases, s.layers, s.dropout, true, s.bidirectional, s.batch_first);
    return {a, b, c};
  }
  auto run = [&](auto padded, auto packed) -> std::vector<at::Tensor> {
    auto [a, b] =
        n.batch_sizes
            ? packed(n.input, *n.batch_sizes, state[0], params, s.biases, s.layers, s.dropout, true, s.bidirectional)
            : padded(n.input, state[0], params, s.biases, s.layers, s.dropout, true, s.bidirectional, s.batch_first);
    return {a, b};
  };
  if (s.cell == Cell::gru) return run(at::_ops::gru_input::call, at::_ops::gru_data::call);
  if (s.cell == Cell::rnn_tanh) return run(at::_ops::rnn_tanh_input::call, at::_ops::rnn_tanh_data::call);
  return run(at::_ops::rnn_relu_input::call, at::_ops::rnn_relu_data::call);
}

std::vector<at::Tensor> oracle(const Shape& s, const Numbers& n, const LayerRef& layer) {
  const LayerPrecision* p = &layer->precision();
  std::vector<int64_t> rows = s.batch_sizes.empty() ? std::vector<int64_t>(s.steps, s.batch) : s.batch_sizes;
  at::Tensor x = n.batch_sizes ? n.input : (s.batch_first ? n.input.transpose(0, 1) : n.input).reshape({-1, s.inputs});
  std::vector<int64_t> offset(rows.size(), 0);
  for (size_t t = 1; t < rows.size(); ++t) offset[t] = offset[t - 1] + rows[t - 1];
  const int64_t D = s.directions(), per_cell = s.biases ? 4 : 2;
  std::vector<at::Tensor> all_h, all_c;
  for (int64_t l = 0; l < s.layers; ++l) {
    std::vector<at::Tensor> outputs;
    for (int64_t d = 0; d < D; ++d) {
      const int64_t k = l * D + d;
      const std::vector<at::Tensor> w(n.params.begin() + k * per_cell, n.params.begin() + (k + 1) * per_cell);
      std::vector<at::Tensor> at_row(x.size(0)), h_n, c_n;
      for (int64_t b = 0; b < s.batch; ++b) {
        at::Tensor h = n.state[0][k].narrow(0, b, 1),
                   c = s.cell == Cell::lstm ? n.state[1][k].narrow(0, b, 1) : at::Tensor();
        const int64_t length = std::count_if(rows.begin(), rows.end(), [&](int64_t r) { return b < r; });
        for (int64_t i = 0; i < length; ++i) {
          const int64_t row = offset[d == 0 ? i : length - 1 - i] + b;
          step(s.cell, x.narrow(0, row, 1), h, c, w, p);
          at_row[row] = h;
        }
        h_n.push_back(h);
        if (c.defined()) c_n.push_back(c);
      }
      outputs.push_back(at::cat(at_row));
      all_h.push_back(at::cat(h_n));
      if (!c_n.empty()) all_c.push_back(at::cat(c_n));
    }
    x = at::cat(outputs, 1);
  }
  if (!n.batch_sizes) x = x.view({s.steps, s.batch, -1});
  if (s.batch_first) x = x.transpose(0, 1);
  std::vector<at::Tensor> result{x, at::stack(all_h)};
  if (!all_c.empty()) result.push_back(at::stack(all_c));
  return result;
}

Outcome outcome(Forward forward, const Shape& s, const Numbers& n, const LayerRef& layer) {
  Outcome o;
  o.outputs = forward(s, n, layer);
  auto gen = generator(99);
  std::vector<at::Tensor> weighting, inputs{n.input};
  for (const auto& t : o.outputs) weighting.push_back(at::randn(t.sizes(), gen));
  inputs.insert(inputs.end(), n.state.begin(), n.state.end());
  inputs.insert(inputs.end(), n.params.begin(), n.params.end());
  o.gradients = torch::autograd::grad(o.outputs, inputs, weighting);
  return o;
}

double distance(const Outcome& a, const Outcome& b) {
  double worst = 0;
  auto compare = [&](const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& y) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(x[i].defined() && y[i].defined()) << i;
      ASSERT_EQ(x[i].sizes(), y[i].sizes()) << i;
      if (x[i].numel() == 0) continue;
      const double scale = y[i].abs().max().item<double>(), off = (x[i] - y[i]).abs().max().item<double>();
      if (!(off == 0)) worst = std::isfinite(off) ? std::max(worst, off / scale) : INFINITY;
    }
  };
  compare(a.outputs, b.outputs);
  compare(a.gradients, b.gradients);
  return worst;
}

}  // namespace hpqf::engine::testing
