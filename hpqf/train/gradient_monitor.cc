#include "hpqf/train/gradient_monitor.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/train/tensor_look.h"

namespace hpqf::train {
namespace {

using observe::GradientObservation;
using observe::Subject;

const void* key(const at::Tensor& t) { return t.unsafeGetTensorImpl(); }

plan::LayerKind kind_of(const plan::ModelFacts& facts, const std::string& layer) {
  const auto it = std::ranges::find(facts.layers, layer, &plan::LayerFacts::name);
  return it == facts.layers.end() ? plan::LayerKind::other : it->kind;
}

// Blocks run along the axis of a weight that the product contracts: the inner one of [out][in], the input channels of a
// convolution's [out][in][...], which in a transposed one stand first. Biases and norms are never rounded.
int64_t contracted_axis(plan::LayerKind kind) { return kind == plan::LayerKind::conv_transpose ? 0 : 1; }
bool is_operand(const at::Tensor& parameter) { return parameter.dim() >= 2; }

GradientObservation finish(int64_t step, const std::string& layer, Subject subject, const BlockFormat& format,
                           const Look& look) {
  GradientObservation o;
  o.step = step;
  o.layer = layer;
  o.subject = subject;
  o.format = formats::to_string(format);
  observe::fill(o, look.stats);
  if (look.rounded) observe::fill(o, look.error, look.overflow);
  return o;
}

}  // namespace

GradientMonitor::GradientMonitor(GradientMonitorOptions options) : options_(std::move(options)) {
  if (options_.every < 1)
    throw Error(fmt::format("a gradient monitor every {} steps", options_.every), "1 or more", "e.g. 50");
  observe::check(options_.detector);
  if (!options_.path.empty()) lines_.emplace(options_.path, options_.max_bytes);
}

void GradientMonitor::resume_after(int64_t step) {
  if (lines_) lines_->resume_after(step);
}

template <class Work>
void GradientMonitor::guarded(Work&& work) {
  try {
    work();
  } catch (const std::exception& e) {
    if (said_.size() < 100 && said_.insert(e.what()).second)
      notes_.push_back(fmt::format("the gradient monitor failed, training goes on: {}", e.what()));
  }
}

void GradientMonitor::gradients(int64_t step, std::span<const engine::LayerParameter> parameters,
                                const PrecisionPlan* plan, const plan::ModelFacts& facts) {
  guarded([&] { look(step, parameters, plan, facts); });
}

void GradientMonitor::updated(std::span<const engine::LayerParameter> parameters) {
  guarded([&] { complete(parameters); });
}

void GradientMonitor::look(int64_t step, std::span<const engine::LayerParameter> parameters, const PrecisionPlan* plan,
                           const plan::ModelFacts& facts) {
  const engine::Passthrough as_torch;
  before_.clear();
  struct LayerLook {
    std::string layer;
    LayerPrecision precision;
    int64_t axis;
    Look weight, gradient;
    bool has_gradient = false;
  };
  std::vector<LayerLook> looks;
  std::unordered_set<const void*> seen;  // tied parameters count where they stand first
  for (const engine::LayerParameter& p : parameters) {
    if (!at::isFloatingType(p.tensor.scalar_type()) || !seen.insert(key(p.tensor)).second) continue;
    auto at = std::ranges::find(looks, p.layer, &LayerLook::layer);
    if (at == looks.end()) {
      const plan::LayerKind kind = kind_of(facts, p.layer);
      looks.push_back(
          {p.layer, plan ? plan->at(p.layer, kind) : LayerPrecision{}, contracted_axis(kind), {}, {}, false});
      at = std::prev(looks.end());
    }
    const bool operand = is_operand(p.tensor), round = options_.quantisation && operand;
    const BlockFormat weight = operand ? at->precision.weight : BlockFormat{},
                      wgrad = operand ? at->precision.wgrad : BlockFormat{};
    look_at(p.tensor, weight, at->axis, round, at->weight);
    before_.emplace(key(p.tensor), p.tensor.detach().clone());
    if (!p.tensor.grad().defined()) continue;
    look_at(p.tensor.grad(), wgrad, at->axis, round, at->gradient);
    at->has_gradient = true;
  }
  for (const LayerLook& look : looks) {
    pending_.push_back(finish(step, look.layer, Subject::weight, look.precision.weight, look.weight));
    if (look.has_gradient)
      pending_.push_back(finish(step, look.layer, Subject::gradient, look.precision.wgrad, look.gradient));
  }
  open_ = true;
}

void GradientMonitor::output_gradient(int64_t step, const std::string& layer, const at::Tensor& gradient,
                                      const BlockFormat& format, bool input, std::optional<int64_t> time_axis) {
  guarded([&] {
    const engine::Passthrough as_torch;
    Look seen;
    look_at(gradient, format, gradient.dim() - 1, options_.quantisation, seen);
    GradientObservation o = finish(step, layer, input ? Subject::input_grad : Subject::output_grad, format, seen);
    if (time_axis && *time_axis < gradient.dim()) o.time_norms = norms_along(gradient, *time_axis);
    // A layer that runs twice in a step has two: both are kept, in the order of backward.
    pending_.push_back(std::move(o));
  });
}

void GradientMonitor::complete(std::span<const engine::LayerParameter> parameters) {
  if (!open_) return;
  open_ = false;
  const engine::Passthrough as_torch;
  std::map<std::string, Change> changes;
  for (const engine::LayerParameter& p : parameters) {
    const auto before = before_.find(key(p.tensor));
    if (before == before_.end() || before->second.sizes() != p.tensor.sizes()) continue;
    const Change change = change_of(before->second, p.tensor);
    changes[p.layer].change += change.change;
    changes[p.layer].weight += change.weight;
    before_.erase(before);
  }
  before_.clear();
  for (GradientObservation& o : pending_) {
    const auto change = changes.find(o.layer);
    if (o.subject == Subject::weight && change != changes.end() && change->second.weight > 0)
      o.update_ratio = std::sqrt(change->second.change / change->second.weight);
    if (o.update_ratio && !std::isfinite(*o.update_ratio)) o.update_ratio.reset();
  }
  observe::Detection detection = observe::detect(std::move(state_), pending_, options_.detector);
  state_ = std::move(detection.state);
  findings_ = std::move(detection.findings);
  latest_ = std::exchange(pending_, {});
  if (!lines_) return;
  for (const GradientObservation& o : latest_)
    if (std::string failed = lines_->append(observe::to_json_line(o)); !failed.empty())
      notes_.push_back("gradients.jsonl cannot be written, training goes on: " + failed);
}

std::vector<std::string> GradientMonitor::take_notes() { return std::exchange(notes_, {}); }

}  // namespace hpqf::train
