#include "hpqf/engine/sensitivity/capture.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include "hpqf/base/error.h"

namespace hpqf::engine::sensitivity {
namespace {

namespace ag = torch::autograd;

int64_t version(const at::Tensor& t) { return t.defined() && !t.is_inference() ? t._version() : 0; }

}  // namespace

at::Tensor Capture::on_op(Layer& layer, const ProbedOp& op, at::Tensor y) {
  if (ag::get_current_graph_task_id() >= 0) return y;  // a recomputation: the op was seen when it ran first
  if (!at::GradMode::is_enabled()) {
    without_gradient_.insert(&layer);
    return y;
  }
  // A frozen layer's output needs a gradient too; and a view has no node of its own when it is overwritten in place.
  if (!y.requires_grad()) y = y.detach().requires_grad_().clone();
  if (y.is_view()) y = y.clone();
  ops_.push_back({&layer, op, y.sizes().vec(), ag::impl::gradient_edge(y), version(op.input), version(op.weight)});
  return y;
}

std::vector<at::Tensor> Capture::gradients(const at::Tensor& loss, bool keep_graph) const {
  for (const CapturedOp& c : ops_)
    if (version(c.op.input) != c.input_version || version(c.op.weight) != c.weight_version)
      throw Error("sensitivity of layer '" + c.layer->name + "' (" + std::string(c.op.op) +
                      "), whose input or weight was overwritten in place after it was used",
                  "operands that stay as they were until the backward", "use the out-of-place operation there");
  if (!loss.requires_grad()) return std::vector<at::Tensor>(ops_.size());
  ag::edge_list edges;
  for (const CapturedOp& c : ops_) edges.push_back(c.output);
  at::NoGradGuard no_grad;
  return ag::Engine::get_default_engine().execute({ag::impl::gradient_edge(loss)}, {at::ones_like(loss)}, keep_graph,
                                                  /*create_graph=*/false, /*accumulate_grad=*/false, edges);
}

}  // namespace hpqf::engine::sensitivity
