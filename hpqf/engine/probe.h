// Ops of a model that runs in fp32, seen one by one: what an operand's rounding error would do to the output, on demand
// and after the op. The measurement of sensitivity lives on it.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>
#include <tuple>

#include "hpqf/engine/gemm.h"
#include "hpqf/engine/layer.h"
#include "hpqf/engine/rnn.h"

namespace hpqf::engine {

struct ProbedOp {
  std::string_view op;
  at::Tensor input, weight;  // detached; undefined where there is none (lookups; products of two activations)
  int64_t input_axis = -1, weight_axis = -1;  // contraction axes: blocks run along them
  double macs = 0;                            // multiply-adds of the forward pass
  // Both give a change of y, of its shape; empty where there is no such operand. Call them outside of autograd and
  // inside a Passthrough.
  std::function<at::Tensor(const at::Tensor& delta)> weight_product;  // op(input, delta)
  std::function<at::Tensor(const BlockFormat& format)> input_error;   // op(round(input), weight) - op(input, weight)
};

class Probe {
 public:
  virtual ~Probe() = default;
  // y is what the op gave; what is returned takes its place.
  virtual at::Tensor on_op(Layer& layer, const ProbedOp& op, at::Tensor y) = 0;
};

at::Tensor run_probed(Probe& probe, const GemmCall& call, const at::Tensor& a, Layer& layer);

// A recurrent layer written out in ATen ops, so that its products can be seen: two ops for each layer and direction,
// the one on the inputs and the one on the hidden states of all time steps. Inputs are [B, T, ..] (packed: [sum, ..]).
// Output, h_n and c_n as in run_rnn.
std::tuple<at::Tensor, at::Tensor, at::Tensor> run_probed_rnn(Probe& probe, const RnnCall& call, Layer& layer);

}  // namespace hpqf::engine
