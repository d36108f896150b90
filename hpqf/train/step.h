// One training step as a list of phases.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/plan/fallback.h"
#include "hpqf/plan/sensitivity.h"
#include "hpqf/train/loader.h"
#include "hpqf/train/loss_scaler.h"
#include "hpqf/train/schedule.h"

namespace torch::optim {
class Optimizer;
}

namespace hpqf::train {

class GradientMonitor;

using Forward = std::function<at::Tensor(const at::Tensor& data)>;
using LossFn = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

struct StepResult {
  int64_t step = 0;   // optimizer steps tried so far, this one included: the first is 1
  int64_t epoch = 0;  // from 0
  bool applied = false;
  std::string cause;                // why the step was skipped, naming layer and role; "" when applied
  double loss = 0;                  // mean over the samples, unscaled; may be NaN or infinite in a skipped step
  double loss_scale = 1;            // that this step ran with
  double lr = 0;                    // of the first parameter group, in this step
  std::optional<double> grad_norm;  // 2-norm after unscaling, before clipping; unset when max_grad_norm is off
  int64_t samples = 0;
  double seconds = 0;                // wall time of the step, data loading not included
  double unix_seconds = 0;           // wall clock at the end of the step; 0: nobody looked
  int64_t plan_epoch = 0;            // of the plan this step ran with
  std::vector<std::string> changes;  // what was decided at the end of the step: plan and loss scale, with reasons
  double samples_per_second() const { return seconds > 0 ? samples / seconds : 0; }
};

struct StepCounters {
  int64_t step = 0;     // tried
  int64_t applied = 0;  // drives the schedule
  bool operator==(const StepCounters&) const = default;
};

// What a step works with. All pointers must outlive the step; none may be null but `runtime`, `audit` and `monitor`.
struct StepParts {
  Forward forward;
  LossFn loss;
  std::vector<LayerParameter> parameters;
  torch::optim::Optimizer* optimizer = nullptr;
  LossScaler* scaler = nullptr;
  engine::Runtime* runtime = nullptr;  // null: torch as it is
  observe::Audit* audit = nullptr;     // must be (behind) the sink of `runtime`
  GradientMonitor* monitor = nullptr;  // null: nobody looks at the gradients
  plan::FallbackRules fallback;
  Schedule schedule;
  std::vector<double> base_lr;  // per parameter group
  double max_grad_norm = 0;     // 0: no clipping
  int64_t settle_after = 1;     // steps after which an "auto" plan may be settled
};

class HPQF_API TrainStep {
 public:
  explicit TrainStep(StepParts parts);

  // One optimizer step over the micro-batches (one batch: no accumulation). Each loss is weighted by its share of the
  // samples, so that the gradient is that of the mean over all of them. Error: a loss that is not a scalar, a batch no
  // layer can train on.
  StepResult run(std::span<const Batch> micro_batches);

  StepCounters counters;  // checkpointed, like the fallback state
  plan::FallbackState fallback;
  std::optional<plan::Sensitivity> sensitivity;  // what an "auto" plan is chosen by, beside speed; not checkpointed

 private:
  void zero_gradients();
  void look_at_gradients(int64_t step);
  std::pair<double, int64_t> forward_backward(std::span<const Batch> micro_batches);  // mean loss, samples
  std::vector<std::string> react(const plan::Observations& observations);
  StepParts parts_;
};

}  // namespace hpqf::train
