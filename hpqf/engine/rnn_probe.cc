#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "hpqf/engine/probe.h"
#include "hpqf/engine/rnn_layer.h"
#include "hpqf/engine/rounding.h"

namespace hpqf::engine {
namespace {

using at::Tensor;

std::vector<RnnStep> schedule(const RnnCall& call, const Tensor& x) {
  std::vector<RnnStep> steps;
  const int64_t count = call.batch_sizes ? call.batch_sizes->size(0) : x.size(0);
  for (int64_t t = 0, offset = 0; t < count; ++t) {
    steps.push_back({offset, call.batch_sizes ? (*call.batch_sizes)[t].item<int64_t>() : x.size(1)});
    offset += steps.back().rows;
  }
  return steps;
}

// The gates of one step, cell by cell as torch documents them (torch.nn.LSTM, GRU, RNN).
struct State {
  Tensor h, c;
};
State advance(Cell cell, const Tensor& from_x, const Tensor& from_h, const State& s) {
  if (cell == Cell::lstm) {
    const auto gate = from_x.add(from_h).chunk(4, -1);
    const Tensor c = gate[1].sigmoid().mul(s.c).add(gate[0].sigmoid().mul(gate[2].tanh()));
    return {gate[3].sigmoid().mul(c.tanh()), c};
  }
  if (cell == Cell::gru) {
    const auto x = from_x.chunk(3, -1), h = from_h.chunk(3, -1);
    const Tensor r = x[0].add(h[0]).sigmoid(), z = x[1].add(h[1]).sigmoid(), n = x[2].add(r.mul(h[2])).tanh();
    return {n.add(z.mul(s.h.sub(n))), {}};
  }
  const Tensor sum = from_x.add(from_h);
  return {cell == Cell::rnn_tanh ? sum.tanh() : sum.relu(), {}};
}

class Direction {
 public:
  Direction(Probe& probe, const RnnCall& call, Layer& layer, const std::vector<RnnStep>& steps)
      : probe_(probe), call_(call), layer_(layer), steps_(steps) {}

  // x [T, B, I] or [sum, I]; the output alike.
  Tensor run(const Tensor& x, const Tensor& w_ih, const Tensor& w_hh, const std::optional<Tensor>& b_ih,
             const std::optional<Tensor>& b_hh, bool reverse, State& state) {
    const Tensor from_x = flat(input_product(order(x), w_ih, b_ih));
    // Added to the hidden products of all steps: its gradient is theirs.
    const Tensor zero = at::zeros(from_x.sizes(), from_x.options());
    const Tensor added = order(x.dim() == 3 ? zero.view({x.size(0), x.size(1), -1}) : zero)
                             .contiguous()
                             .requires_grad_(at::GradMode::is_enabled())
                             .clone();
    const Tensor added_flat = flat(added);
    std::vector<Tensor> outputs(steps_.size()), before(steps_.size());
    const int64_t batch = state.h.size(0);
    for (size_t i = 0; i < steps_.size(); ++i) {
      const size_t t = reverse ? steps_.size() - 1 - i : i;
      const auto [offset, rows] = steps_[t];
      auto top = [rows](const Tensor& s) { return s.defined() ? s.narrow(0, 0, rows) : s; };
      const State now{top(state.h), top(state.c)};
      before[t] = now.h.detach();
      const Tensor from_h = at::linear(now.h, w_hh, b_hh).add(added_flat.narrow(0, offset, rows));
      const State next = advance(call_.cell, from_x.narrow(0, offset, rows), from_h, now);
      outputs[t] = next.h;
      auto merge = [&](const Tensor& fresh,
                       const Tensor& old) {  // sequences that have ended, or not begun, keep theirs
        return !old.defined() || rows == batch ? fresh : at::cat({fresh, old.narrow(0, rows, batch - rows)});
      };
      state = {merge(next.h, state.h), merge(next.c, state.c)};
    }
    hidden_product(order(unflat(at::cat(before), x)), w_hh, added);
    return unflat(at::cat(outputs), x);
  }

 private:
  bool packed() const { return call_.batch_sizes.has_value(); }
  // Between [T, B, k], as the steps go, and [B, T, k], as a probe sees it. Packed: [sum, k] always.
  Tensor order(const Tensor& t) const { return packed() ? t : t.transpose(0, 1); }
  Tensor flat(const Tensor& t) const { return packed() ? t : t.transpose(0, 1).reshape({-1, t.size(-1)}); }
  Tensor unflat(const Tensor& t, const Tensor& x) const {
    return packed() ? t : t.view({x.size(0), x.size(1), t.size(-1)});
  }
  static ProbedOp product(const Layer& layer, Cell cell, const Tensor& x, const Tensor& w) {
    ProbedOp op{.op = op_name(cell), .input = x.detach(), .weight = w.detach(), .macs = double(x.numel()) * w.size(0)};
    op.weight_product = [x = op.input](const Tensor& delta) { return at::linear(x, delta); };
    return op;
  }
  Tensor input_product(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias) {
    ProbedOp op = product(layer_, call_.cell, x, w);
    op.input_error = [x = op.input, w = op.weight, layer = ref(&layer_)](const BlockFormat& f) {
      return at::linear(round(x, f, -1, *layer, plan::Role::input).sub(x), w);
    };
    return probe_.on_op(layer_, op, at::linear(x, w, bias));
  }
  void hidden_product(const Tensor& h, const Tensor& w, const Tensor& added) {
    ProbedOp op = product(layer_, call_.cell, h, w);
    op.input_error = [h = op.input, w = op.weight, layer = ref(&layer_), steps = steps_,
                      packed = packed()](const BlockFormat& f) {
      // Each step is an operand of its own: a scale for the tensor is one for the step.
      std::vector<Tensor> rounded;
      for (size_t t = 0; t < steps.size(); ++t) {
        const Tensor step = packed ? h.narrow(0, steps[t].offset, steps[t].rows) : h.select(1, int64_t(t));
        rounded.push_back(round(step, f, -1, *layer, plan::Role::input).sub(step));
      }
      return at::linear(packed ? at::cat(rounded) : at::stack(rounded, 1), w);
    };
    probe_.on_op(layer_, op, added);
  }

  Probe& probe_;
  const RnnCall& call_;
  Layer& layer_;
  const std::vector<RnnStep>& steps_;
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> run_probed_rnn(Probe& probe, const RnnCall& call, Layer& layer) {
  Tensor x = !call.batch_sizes && call.batch_first ? call.input.transpose(0, 1) : call.input;
  const std::vector<RnnStep> steps = schedule(call, x);
  Direction direction(probe, call, layer, steps);
  const bool lstm = call.cell == Cell::lstm;
  const auto h0 = call.state[0].unbind(0);
  const auto c0 = lstm ? call.state[1].unbind(0) : std::vector<Tensor>(h0.size());
  std::vector<Tensor> h_n, c_n;
  for (int64_t l = 0; l < call.num_layers; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < (call.bidirectional ? 2 : 1); ++d) {
      const size_t index = h_n.size(), first = index * (call.has_biases ? 4 : 2);
      auto bias = [&](size_t i) {
        return call.has_biases ? std::optional<Tensor>(call.params[first + i]) : std::nullopt;
      };
      State state{h0[index], c0[index]};
      outputs.push_back(direction.run(x, call.params[first], call.params[first + 1], bias(2), bias(3), d == 1, state));
      h_n.push_back(state.h);
      if (lstm) c_n.push_back(state.c);
    }
    x = outputs.size() == 2 ? at::cat(outputs, -1) : outputs[0];
    if (call.dropout != 0 && call.train && l < call.num_layers - 1) x = at::dropout(x, call.dropout, /*train=*/true);
  }
  if (!call.batch_sizes && call.batch_first) x = x.transpose(0, 1);
  return {x, at::stack(h_n, 0), lstm ? at::stack(c_n, 0) : Tensor()};
}

}  // namespace hpqf::engine
