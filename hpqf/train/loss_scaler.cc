#include "hpqf/train/loss_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::train {
namespace {

const void* key(const at::Tensor& t) { return t.unsafeGetTensorImpl(); }

// Multiplies in place and counts the non-finite results.
int64_t scale_in_place(at::Tensor& values, double factor) {
  if (values.numel() == 0) return 0;
  if (values.device().is_cpu() && values.scalar_type() == at::kFloat) {
    // The memory of a non-overlapping dense tensor is one run of numel() values, whatever the order of its dimensions.
    const int64_t bad =
        kernels::scale_and_count_nonfinite(values.data_ptr<float>(), values.numel(), static_cast<float>(factor));
    values.unsafeGetTensorImpl()->bump_version();  // written behind autograd's back
    return bad;
  }
  values.mul_(factor);
  return values.numel() - at::isfinite(values).sum().item<int64_t>();
}

int64_t unscale_gradient(const at::Tensor& parameter, double inverse) {
  at::Tensor& grad = parameter.mutable_grad();
  if (grad.is_sparse()) {
    grad = grad.coalesce();  // duplicates first become one value: their sum is what must be finite
    at::Tensor values = grad._values();
    if (!values.is_non_overlapping_and_dense()) values = values.contiguous();
    const int64_t bad = scale_in_place(values, inverse);
    if (!values.is_same(grad._values())) grad._values().copy_(values);
    return bad;
  }
  if (!grad.is_non_overlapping_and_dense() || grad.is_neg()) grad = grad.clone(at::MemoryFormat::Contiguous);
  return scale_in_place(grad, inverse);
}

double norm_of(const at::Tensor& grad) {
  const at::Tensor values = grad.is_sparse() ? grad._values() : grad;
  if (values.numel() == 0) return 0;
  const double norm = at::linalg_vector_norm(values, 2).item<double>();
  // Finite gradients over 1e19 overflow the fp32 sum of squares.
  return std::isfinite(norm) ? norm : at::linalg_vector_norm(values, 2, {}, false, at::kDouble).item<double>();
}

}  // namespace

std::string GradientHealth::text() const {
  if (finite) return "";
  const std::string where = layer.empty() ? std::string("the model") : "layer " + layer;
  std::string text = fmt::format("{}: non-finite values in the gradient of {}", where, parameter);
  if (layers.size() > 1) {
    const size_t others = layers.size() - 1;
    text += fmt::format(" and of {} layer{} before it", others, others == 1 ? "" : "s");
  }
  return text + fmt::format(" ({} values)", nonfinite);
}

LossScaler::LossScaler(plan::LossScaleOptions options, std::vector<LayerParameter> names)
    : options_(options), names_(std::move(names)) {
  plan::check(options_);
  state_ = plan::initial(options_);
}

at::Tensor LossScaler::scale(const at::Tensor& loss) {
  for (const auto& [parameter, seen] : seen_) {
    if (seen.stepped) continue;
    throw Error("to scale a loss after gradients of the same step were unscaled",
                "all backward passes of a step come before unscale_and_check, clip_grad_norm and step",
                "accumulate first, then unscale; or end the step with step(optimizer) and update()");
  }
  if (state_.scale == 1) return loss;
  // A half-precision loss times 65536 is infinite from 1.0 on.
  const bool half = loss.scalar_type() == at::kHalf || loss.scalar_type() == at::kBFloat16;
  return (half ? loss.to(at::kFloat) : loss).mul(state_.scale);
}

GradientHealth LossScaler::unscale_and_check(std::span<const LayerParameter> parameters) {
  at::NoGradGuard no_grad;
  GradientHealth health;
  bool fresh = false;
  // Two parameters may hold the very same gradient tensor; its values must be divided once.
  std::unordered_map<const void*, int64_t> done;
  for (const LayerParameter& p : parameters) {
    if (!p.tensor.grad().defined()) continue;
    ++health.gradients;
    auto [it, inserted] = seen_.try_emplace(key(p.tensor));
    if (inserted) {
      fresh = true;
      const auto known = done.find(key(p.tensor.grad()));
      it->second.nonfinite = known != done.end() ? known->second : unscale_gradient(p.tensor, 1 / state_.scale);
      done.emplace(key(p.tensor.grad()), it->second.nonfinite);
    }
    if (it->second.nonfinite == 0) continue;
    health.finite = false;
    health.nonfinite += it->second.nonfinite;
    health.layer = p.layer;
    health.parameter = p.name;
    if (health.layers.empty() || health.layers.back() != p.layer) health.layers.push_back(p.layer);
  }
  health.repeated = health.gradients > 0 && !fresh;
  return health;
}

GradientHealth LossScaler::unscale_and_check(torch::optim::Optimizer& optimizer) {
  return unscale_and_check(named(optimizer));
}

double LossScaler::clip_grad_norm(std::span<const LayerParameter> parameters, double max_norm) {
  if (!(max_norm > 0) || !std::isfinite(max_norm)) {
    throw Error(fmt::format("to clip gradients to norm {}", max_norm), "a finite norm over 0",
                "leave clipping out instead");
  }
  const GradientHealth health = unscale_and_check(parameters);
  at::NoGradGuard no_grad;
  double squares = 0;
  std::unordered_set<const void*> counted;
  std::vector<at::Tensor> gradients;
  for (const LayerParameter& p : parameters) {
    if (!p.tensor.grad().defined() || !counted.insert(key(p.tensor.grad())).second) continue;
    gradients.push_back(p.tensor.grad());
    const double norm = norm_of(gradients.back());
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (!health.finite || norm <= max_norm) return norm;
  for (at::Tensor& grad : gradients) (grad.is_sparse() ? grad._values() : grad).mul_(max_norm / norm);
  return norm;
}

double LossScaler::clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm) {
  return clip_grad_norm(named(optimizer), max_norm);
}

StepStatus LossScaler::step(torch::optim::Optimizer& optimizer) {
  if (std::find(stepped_.begin(), stepped_.end(), &optimizer) != stepped_.end()) {
    throw Error("step() a second time for the same optimizer", "one step() for each optimizer, then update()",
                "call update() at the end of each step");
  }
  const std::vector<LayerParameter> parameters = named(optimizer);
  const GradientHealth health = unscale_and_check(parameters);
  stepped_.push_back(&optimizer);
  for (const LayerParameter& p : parameters) {
    if (const auto it = seen_.find(key(p.tensor)); it != seen_.end()) it->second.stepped = true;
  }
  if (health.gradients == 0) return {false, "no parameter of the optimizer has a gradient: nothing to do"};
  if (!health.finite) return {false, health.text()};
  optimizer.step();
  return {true, ""};
}

std::string LossScaler::update() {
  const bool any = !seen_.empty();
  const bool finite = std::all_of(seen_.begin(), seen_.end(), [](const auto& s) { return s.second.nonfinite == 0; });
  seen_.clear();
  stepped_.clear();
  if (!any) return "";
  plan::LossScaleChange change = plan::update(state_, finite, options_);
  state_ = change.state;
  return change.reason;
}

void LossScaler::set_state(const plan::LossScaleState& state) {
  if (!(state.scale > 0) || !std::isfinite(state.scale) || state.clean_steps < 0 || state.bad_steps < 0 ||
      !(state.best_scale >= 0)) {
    throw Error(fmt::format("a loss scale of {} after {} clean and {} bad steps", state.scale, state.clean_steps,
                            state.bad_steps),
                "a finite scale over 0 and counts from 0", "restore the state that state() gave");
  }
  state_ = state;
}

std::vector<LayerParameter> LossScaler::named(torch::optim::Optimizer& optimizer) const {
  std::vector<LayerParameter> all;
  std::unordered_set<const void*> mine, taken;
  for (const auto& group : optimizer.param_groups()) {
    for (const at::Tensor& p : group.params()) mine.insert(key(p));
  }
  for (const LayerParameter& p : names_) {  // definition order
    if (mine.count(key(p.tensor)) && taken.insert(key(p.tensor)).second) all.push_back(p);
  }
  int64_t g = 0;
  for (const auto& group : optimizer.param_groups()) {
    for (size_t i = 0; i < group.params().size(); ++i) {
      const at::Tensor& p = group.params()[i];
      if (taken.insert(key(p)).second) all.push_back({"", fmt::format("parameter {} of group {}", i, g), p});
    }
    ++g;
  }
  return all;
}

}  // namespace hpqf::train
