// MixedPrecisionTrainer: trains a model under a precision plan; the two lines most users need.
//
//   hpqf::MixedPrecisionTrainer trainer(model, {.precision = "fp16", .sensitive_layers = {"conv1", "fc"}});
//   trainer.train(loader, loss_fn, {.epochs = 2});
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/monitor/monitor.h"
#include "hpqf/plan/fallback.h"
#include "hpqf/plan/loss_scale.h"
#include "hpqf/plan/plan.h"
#include "hpqf/train/evaluate.h"
#include "hpqf/train/loader.h"
#include "hpqf/train/optimizer_state.h"
#include "hpqf/train/range_loader.h"
#include "hpqf/train/schedule.h"
#include "hpqf/train/step.h"

namespace torch::nn {
class Module;
}

namespace hpqf {
using train::Batch;
using train::EvalResult;
using train::StepResult;

struct TrainerOptions {
  std::string precision = "bf16";             // a format, "fp8", "auto" (probed on this machine)
  std::vector<std::string> sensitive_layers;  // patterns kept at fp32
  std::string optimizer_precision = "fp32";   // arithmetic and state; only fp32 in this version
  std::optional<PrecisionPlan> plan;          // instead of precision and sensitive_layers
  // Unset: dynamic when some layer's output gradients are fp16 or fp8, else off (scale 1; non-finite steps are skipped
  // all the same).
  std::optional<plan::LossScaleOptions> loss_scale;
  plan::FallbackRules fallback;
  plan::RangeRules range;        // range compensation; off unless enabled
  double max_grad_norm = 0;      // 0: no clipping
  int64_t accumulate_steps = 1;  // micro-batches per optimizer step
  engine::Strict strict = engine::Strict::off;
  std::shared_ptr<observe::EventSink> events;  // hears every event, training and evaluation
  std::optional<uint64_t> seed;                // seeds torch's CPU generator when train() starts from step 0
};

struct TrainOptions {
  int64_t epochs = 0;  // epochs or steps; both 0: one epoch; both given: whichever ends first
  int64_t steps = 0;   // optimizer steps in total, skipped ones and those before a resume included
  std::shared_ptr<torch::optim::Optimizer>
      optimizer;  // over parameters of the model; unset: made from `optimizer_spec`
  train::OptimizerSpec optimizer_spec;
  train::Schedule schedule;
  // Run folder: plan.json, metrics.jsonl, audit.json, checkpoints/step-*.safetensors. "": nothing is written.
  // Created when missing; Error before any work when it cannot be written, or holds a run and `resume` is false.
  std::string out_dir;
  int64_t checkpoint_every = 0;  // steps; 0: only at the end and when stopped
  int keep_checkpoints = 2;
  bool resume = false;  // from the newest checkpoint in out_dir. Error: none, damaged, other model, other plan
  int64_t monitor_gradients = 0;  // steps between looks at the gradients (gradients.jsonl); 0: none
  // The three-tier monitor; its path is monitor.jsonl in out_dir unless it names one. Unset: none.
  std::optional<observe::MonitorOptions> monitor;
  std::function<void(const observe::Alert&)> on_alert;  // each alert of the monitor's rules, on this thread
  std::function<void(const StepResult&)> on_step;       // after each step; may call evaluate() and request_stop()
};

struct TrainSummary {
  int64_t steps = 0, applied = 0, skipped = 0;  // counted from step 0, also over resumes
  int64_t resumed_from = 0;                     // step; 0: not resumed
  double last_loss = 0;
  double seconds = 0;              // wall time of this call
  bool stopped = false;            // by request_stop()
  std::string checkpoint;          // path of the last one written; "" without out_dir
  std::vector<std::string> notes;  // what a user should know: plan changes, hyperparameters changed by a resume, ...
};

// A model with its type erased: what the trainer calls, and where the parameters are.
struct ModelHandle {
  std::shared_ptr<torch::nn::Module> module;
  train::Forward forward;
};

// From a module holder (TORCH_MODULE), a shared_ptr to a module class with forward(Tensor) -> Tensor, or a ModelHandle.
template <class Model>
ModelHandle make_model_handle(const Model& model) {
  if constexpr (std::is_same_v<Model, ModelHandle>) {
    return model;
  } else if constexpr (requires { model.ptr(); }) {
    return make_model_handle(model.ptr());
  } else {
    static_assert(
        requires(at::Tensor x) {
          { model->forward(x) } -> std::convertible_to<at::Tensor>;
        },
        "the model needs forward(Tensor) -> Tensor; for any other signature give hpqf::ModelHandle{module, forward}");
    return {model, [model](const at::Tensor& x) -> at::Tensor { return model->forward(x); }};
  }
}

// A Loader stays what it is; (a pointer to) a range becomes a RangeLoader that lives as long as the call.
template <class Data, class Use>
decltype(auto) with_loader(Data& data, Use&& use) {
  if constexpr (std::is_base_of_v<train::Loader, std::remove_cvref_t<Data>>) {
    return use(static_cast<train::Loader&>(data));
  } else if constexpr (requires { data.begin(); }) {
    train::RangeLoader<std::remove_reference_t<Data>> loader(data);
    return use(static_cast<train::Loader&>(loader));
  } else {
    return with_loader(*data, std::forward<Use>(use));
  }
}

// The model is touched only while train() or evaluate() runs, except for its parameters. The mode (train/eval) stays
// the user's. Parameters must be fp32 or fp64: the plan decides what they are rounded to when used (Error otherwise).
class HPQF_API MixedPrecisionTrainer {
 public:
  template <class Model>
  explicit MixedPrecisionTrainer(const Model& model, TrainerOptions options = {})
      : MixedPrecisionTrainer(make_model_handle(model), std::move(options)) {}
  explicit MixedPrecisionTrainer(ModelHandle model, TrainerOptions options = {});
  ~MixedPrecisionTrainer();
  MixedPrecisionTrainer(const MixedPrecisionTrainer&) = delete;
  MixedPrecisionTrainer& operator=(const MixedPrecisionTrainer&) = delete;

  // loss(output, target) -> scalar tensor. Batches of any size, also one sample, are fine as far as the model can train
  // on them.
  TrainSummary train(train::Loader& loader, train::LossFn loss, TrainOptions options = {});
  template <class Data>
  TrainSummary train(Data&& data, train::LossFn loss, TrainOptions options = {}) {
    return with_loader(data, [&](train::Loader& l) { return train(l, std::move(loss), std::move(options)); });
  }

  // One pass in eval mode without gradients, under the plan in force. Without a loss: that of the last train().
  EvalResult evaluate(train::Loader& loader, train::LossFn loss = nullptr);
  template <class Data>
  EvalResult evaluate(Data&& data, train::LossFn loss = nullptr) {
    return with_loader(data, [&](train::Loader& l) { return evaluate(l, std::move(loss)); });
  }

  observe::AuditReport audit() const;  // of the training steps so far (evaluation not included)
  const PrecisionPlan& plan() const;   // in force; differs from the requested one after a fallback
  const plan::ModelFacts& facts() const;

  // Ends train() after the step in progress, with a checkpoint. Safe to call from a signal handler and from other
  // threads.
  void request_stop() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf
