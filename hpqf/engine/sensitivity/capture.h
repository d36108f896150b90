// Keeps the ops of one forward pass, and finds the gradient of a loss with respect to their outputs.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <set>
#include <string>
#include <vector>

#include "hpqf/engine/probe.h"

namespace hpqf::engine::sensitivity {

struct CapturedOp {
  Layer* layer = nullptr;
  ProbedOp op;
  std::vector<int64_t> output_sizes;
  torch::autograd::Edge output;  // where the output's gradient arrives: known however the output is overwritten later
  int64_t input_version = 0, weight_version = 0;
};

class Capture : public Probe {
 public:
  at::Tensor on_op(Layer& layer, const ProbedOp& op, at::Tensor y) override;

  const std::vector<CapturedOp>& ops() const { return ops_; }
  const std::set<const Layer*>& without_gradient() const { return without_gradient_; }  // ran under no_grad
  void clear() { ops_.clear(); }

  // d loss / d output of each op; undefined where the loss does not depend on it. No .grad is touched, and no weight
  // gradient computed. Error when an operand was overwritten since its op.
  std::vector<at::Tensor> gradients(const at::Tensor& loss, bool keep_graph) const;

 private:
  std::vector<CapturedOp> ops_;
  std::set<const Layer*> without_gradient_;
};

}  // namespace hpqf::engine::sensitivity
