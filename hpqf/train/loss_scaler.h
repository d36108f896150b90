// The tensor side of the loss scale (plan/loss_scale.h is the state machine): scale, unscale, attribute, step or skip.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/plan/loss_scale.h"
#include "hpqf/plan/role.h"

namespace torch::optim {
class Optimizer;
}

namespace hpqf::train {

using engine::LayerParameter;

// What the gradients of a step are worth. Backward runs from the last layer to the first, and everything behind a NaN
// is NaN too, so `layer` is the *last* layer, in definition order, with a non-finite gradient: the one backward reached
// first.
struct HPQF_API GradientHealth {
  bool finite = true;
  std::string layer, parameter;  // where it began; "" when finite
  plan::Role role = plan::Role::output_grad;
  int64_t nonfinite = 0;            // values, over all parameters
  int64_t gradients = 0;            // parameters that had one; 0: there was nothing to do
  std::vector<std::string> layers;  // every layer with a non-finite gradient, definition order
  bool repeated = false;            // all gradients had been unscaled before: this call changed nothing
  std::string text() const;         // "layer conv3: 12 non-finite values in the gradient of weight"; "" when finite
};

struct StepStatus {
  bool applied = false;
  std::string cause;  // why not, naming layer and role; "" when applied
  explicit operator bool() const { return applied; }
};

// One object per training loop. Order of a step, each call optional but the last two:
//   scale(loss).backward(); [unscale_and_check] [clip_grad_norm] step(optimizer) update()
// Whatever is called first unscales; nothing is ever unscaled twice. Several optimizers may share one scaler: one
// step() each, one update() at the end. Not thread safe.
class HPQF_API LossScaler {
 public:
  explicit LossScaler(plan::LossScaleOptions options = {}, std::vector<LayerParameter> names = {});

  double scale_value() const { return state_.scale; }
  // loss * scale, on the graph. Error when gradients of an unfinished step are already unscaled: they would mix.
  at::Tensor scale(const at::Tensor& loss);

  // Divides the gradients by the scale in place and counts what is not finite *after* the division (a finite scaled
  // gradient may unscale to infinity: pytorch #96755). Dense fp32 CPU gradients take one pass of
  // kernels::scale_and_count_nonfinite. Undefined gradients are left out; overlapping (expanded) ones are replaced by
  // contiguous copies; sparse ones are coalesced.
  GradientHealth unscale_and_check(std::span<const LayerParameter> parameters);
  GradientHealth unscale_and_check(torch::optim::Optimizer& optimizer);

  // Scales the gradients so that their joint 2-norm is at most max_norm; returns the norm before. Works on unscaled
  // gradients whatever the order of calls. Non-finite gradients are left alone: the step will be skipped.
  double clip_grad_norm(std::span<const LayerParameter> parameters, double max_norm);
  double clip_grad_norm(torch::optim::Optimizer& optimizer, double max_norm);

  // Steps the optimizer, or skips when a gradient is not finite or there is none. Error when called twice for one
  // optimizer without update().
  StepStatus step(torch::optim::Optimizer& optimizer);

  // Ends the step: the scale grows, backs off or stays. Returns the reason of a change, "" otherwise. A step without
  // any gradient counts neither as clean nor as bad.
  std::string update();

  const plan::LossScaleState& state() const { return state_; }
  void set_state(const plan::LossScaleState& state);  // Error when the numbers are impossible
  const plan::LossScaleOptions& options() const { return options_; }

 private:
  struct Seen {
    int64_t nonfinite = 0;
    bool stepped = false;
  };
  std::vector<LayerParameter> named(torch::optim::Optimizer& optimizer) const;

  plan::LossScaleOptions options_;
  plan::LossScaleState state_;
  std::vector<LayerParameter> names_;
  std::unordered_map<const void*, Seen> seen_;  // by parameter: unscaled in this step
  std::vector<const void*> stepped_;            // optimizers
};

}  // namespace hpqf::train

namespace hpqf {
using train::LossScaler;
using train::StepStatus;
}  // namespace hpqf
