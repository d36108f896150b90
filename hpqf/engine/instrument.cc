#include "hpqf/engine/instrument.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <utility>

#include "hpqf/engine/census.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

namespace ag = torch::autograd;

// Shared by the hooks of one op's nodes.
struct Followed {
  LayerRef layer;
  OpRecord record;
  BlockFormat grad_format;
  int64_t axis;
  bool needs_a, needs_b;
  double share;             // of the backward's FLOPs that one GEMM node stands for
  int64_t rounding_ns = 0;  // spent on the gradient, not reported yet
};

// Autograd runs a node start to end on one thread, so the start time needs no more than a slot a thread; checkpointing
// can run a whole backward inside a node, hence a stack.
thread_local std::vector<int64_t> t_started;

struct RoundGradient : ag::FunctionPreHook {
  std::shared_ptr<Followed> op;
  uint32_t output;
  RoundGradient(std::shared_ptr<Followed> o, uint32_t nr) : op(std::move(o)), output(nr) {}
  ag::variable_list operator()(const ag::variable_list& grads) override {
    if (output >= grads.size() || !grads[output].defined()) return grads;
    AllAutocastOff off;
    const CountedRegion counted;
    const int64_t start = now_ns();
    ag::variable_list rounded = grads;
    rounded[output] = round_ste(grads[output], op->grad_format, op->axis, op->layer, plan::Role::output_grad);
    op->rounding_ns += now_ns() - start;  // part of what the low format costs: reported with the product it feeds
    return rounded;
  }
};

struct StartTimer : ag::FunctionPreHook {
  ag::variable_list operator()(const ag::variable_list& grads) override {
    enter_counted();
    t_started.push_back(now_ns());
    return grads;
  }
};

struct StopTimer : ag::FunctionPostHook {
  std::shared_ptr<Followed> op;
  explicit StopTimer(std::shared_ptr<Followed> o) : op(std::move(o)) {}
  ag::variable_list operator()(const ag::variable_list& outputs, const ag::variable_list&) override {
    if (t_started.empty()) return outputs;  // the node threw between the hooks once: its start is gone
    const int64_t elapsed = now_ns() - t_started.back();
    t_started.pop_back();
    leave_counted();
    emit_backward(*op->layer, op->record, op->needs_a, op->needs_b, elapsed + std::exchange(op->rounding_ns, 0),
                  op->share);
    return outputs;
  }
};

// Autograd's names of the nodes that do the work of a GEMM-like op. The rest of an op's nodes are views and sums.
bool is_gemm_node(const std::string& name) {
  static constexpr std::array kParts = {"Mm",  "mm",   "Convolution", "Dot",     "Mv",
                                        "Rnn", "Lstm", "Linear",      "Baddbmm", "Gru"};
  return std::ranges::any_of(kParts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

}  // namespace

void emit_forward(const Layer& layer, const OpRecord& r, int64_t nanoseconds) {
  auto& events = layer.runtime->events;
  if (!events) return;
  events->on_op({layer.name, r.op, observe::Pass::forward, r.requested_a, r.requested_b, r.a, r.b, r.implementation,
                 r.reason, r.flops, r.bytes, nanoseconds});
}

void emit_backward(const Layer& layer, const OpRecord& r, bool dgrad, bool wgrad, int64_t nanoseconds, double share) {
  auto& events = layer.runtime->events;
  if (!events) return;
  if (!r.is_gemm) {
    events->on_op({layer.name, r.op, observe::Pass::backward, r.requested_a, r.requested_b, r.a, r.b, r.implementation,
                   r.reason, 0, r.bytes, nanoseconds});
    return;
  }
  // One node computes both GEMMs (torch's convolution_backward): they have equal FLOPs, and share the time evenly.
  const int parts = int(dgrad) + int(wgrad);
  if (parts == 0) return;
  if (dgrad)
    events->on_op({layer.name, r.op, observe::Pass::dgrad, r.requested_dgrad, r.requested_b, r.dgrad,
                   r.dgrad.format == Format::fp32 ? r.dgrad : r.b, r.implementation, r.reason, r.flops * share,
                   r.bytes * share, nanoseconds / parts});
  if (wgrad)
    events->on_op({layer.name, r.op, observe::Pass::wgrad, r.requested_wgrad, r.requested_a, r.wgrad,
                   r.wgrad.format == Format::fp32 ? r.wgrad : r.a, r.implementation, r.reason, r.flops * share,
                   r.bytes * share, nanoseconds / parts});
}

void follow_backward(const at::Tensor& y, uint64_t first_sequence, const LayerRef& layer, const OpRecord& record,
                     const BlockFormat& grad_format, int64_t axis, bool needs_a, bool needs_b) {
  if (!y.requires_grad()) return;
  auto top = y.grad_fn();
  if (!top) return;
  auto op = std::make_shared<Followed>(Followed{layer, record, grad_format, axis, needs_a, needs_b, 1});
  if (grad_format.format != Format::fp32) top->add_pre_hook(std::make_unique<RoundGradient>(op, y.output_nr()));
  if (!layer->runtime->events) return;

  // The nodes this op made: reachable from the top, not older than the op.
  c10::SmallVector<ag::Node*, 16> open{top.get()}, seen{top.get()}, gemms;
  while (!open.empty()) {
    ag::Node* node = open.pop_back_val();
    if (is_gemm_node(node->name())) gemms.push_back(node);
    for (const auto& edge : node->next_edges()) {
      ag::Node* next = edge.function.get();
      if (!next || next->sequence_nr() < first_sequence || next->sequence_nr() == UINT64_MAX) continue;
      if (std::find(seen.begin(), seen.end(), next) != seen.end() || seen.size() >= 4096) continue;
      seen.push_back(next);
      open.push_back(next);
    }
  }
  if (gemms.empty()) gemms.push_back(top.get());
  op->share = 1.0 / double(gemms.size());
  for (ag::Node* node : gemms) {
    node->add_pre_hook(std::make_unique<StartTimer>());
    node->add_post_hook(std::make_unique<StopTimer>(op));
  }
}

}  // namespace hpqf::engine
