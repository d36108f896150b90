#include "hpqf/train/trainer.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <unordered_set>

#include "hpqf/base/error.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/train/run.h"
#include "hpqf/train/tee_sink.h"

namespace hpqf {
namespace {

using engine::LayerParameter;

void check(const TrainerOptions& o) {
  if (o.optimizer_precision != "fp32") {
    throw Error(fmt::format("optimizer_precision '{}'", o.optimizer_precision), "fp32 in this version",
                "leave it at fp32: states and arithmetic of the optimizer are not rounded");
  }
  if (o.accumulate_steps < 1)
    throw Error(fmt::format("accumulate_steps {}", o.accumulate_steps), "1 or more", "use 1 for none");
  if (!(o.max_grad_norm >= 0) || !std::isfinite(o.max_grad_norm)) {
    throw Error(fmt::format("max_grad_norm {}", o.max_grad_norm), "a finite number from 0", "use 0 for no clipping");
  }
  if (o.plan && !o.sensitive_layers.empty()) {
    throw Error("a plan together with sensitive_layers", "one of the two", "put a rule for these layers into the plan");
  }
}

void check(const TrainOptions& o) {
  if (o.epochs < 0 || o.steps < 0)
    throw Error(fmt::format("{} epochs, {} steps", o.epochs, o.steps), "numbers from 0", "use 0 for no limit");
  if (o.checkpoint_every < 0)
    throw Error(fmt::format("checkpoint_every {}", o.checkpoint_every), "0 or more", "use 0 for only at the end");
  if (o.resume && o.out_dir.empty())
    throw Error("to resume without a run folder", "resume with out_dir", "set out_dir");
}

void check_parameters(const std::vector<LayerParameter>& parameters) {
  for (const LayerParameter& p : parameters) {
    if (p.tensor.scalar_type() == at::kFloat || p.tensor.scalar_type() == at::kDouble) continue;
    if (!at::isFloatingType(p.tensor.scalar_type())) continue;
    throw Error(fmt::format("parameter {} of layer '{}' in {}", p.name, p.layer, c10::toString(p.tensor.scalar_type())),
                "parameters in fp32 or fp64: the masters that the optimizer updates",
                "keep the model in fp32 and give the precision to the trainer");
  }
}

PrecisionPlan resolve_plan(const TrainerOptions& o, const plan::ModelFacts& facts) {
  PrecisionPlan plan = o.plan ? *o.plan : engine::requested_plan(o.precision, o.sensitive_layers);
  plan.check(facts);
  return plan;
}

bool narrow_range(const BlockFormat& f) {
  return f.format == Format::fp16 || f.format == Format::fp8_e4m3 || f.format == Format::fp8_e5m2;
}

plan::LossScaleOptions resolve_loss_scale(const TrainerOptions& o, const PrecisionPlan& plan,
                                          const plan::ModelFacts& facts) {
  if (o.loss_scale) return *o.loss_scale;
  const bool needed = std::any_of(facts.layers.begin(), facts.layers.end(), [&](const plan::LayerFacts& layer) {
    const LayerPrecision p = plan.at(layer.name, layer.kind);
    return narrow_range(p.dgrad) || narrow_range(p.wgrad);
  });
  return {.enabled = needed};
}

}  // namespace

struct MixedPrecisionTrainer::Impl {
  Impl(ModelHandle handle, TrainerOptions opts) : model(std::move(handle)), options(std::move(opts)) {
    if (!model.module || !model.forward)
      throw Error("a trainer without a model", "a module and its forward", "give both");
    check(options);
    description = engine::describe(*model.module);
    check_parameters(description.parameters);
    requested = resolve_plan(options, description.facts);
    plan = requested;
    scaler.emplace(resolve_loss_scale(options, plan, description.facts), description.parameters);
    sink->user = options.events;
  }

  ModelHandle model;
  TrainerOptions options;
  engine::ModelDescription description;
  PrecisionPlan requested, plan;
  plan::RangeState ranges;
  std::optional<train::LossScaler> scaler;
  std::shared_ptr<train::TeeSink> sink = std::make_shared<train::TeeSink>();
  std::shared_ptr<engine::Runtime> runtime;  // while train() or evaluate() runs
  train::LossFn last_loss;
  bool training = false;
  std::atomic<bool> stop{false};
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

  // Attaches the plan for the outermost of nested calls (evaluate() inside on_step).
  class Attached {
   public:
    explicit Attached(Impl& impl) : impl_(impl), outermost_(!impl.runtime) {
      if (!outermost_) return;
      impl_.runtime = std::make_shared<engine::Runtime>(
          *impl_.model.module, impl_.plan,
          engine::RuntimeOptions{.strict = impl_.options.strict, .events = impl_.sink, .range = impl_.options.range});
      impl_.runtime->set_ranges(impl_.ranges);
    }
    ~Attached() {
      if (!outermost_) return;
      impl_.plan = impl_.runtime->plan();
      impl_.ranges = impl_.runtime->ranges();
      impl_.runtime.reset();
    }
    Attached(const Attached&) = delete;
    Attached& operator=(const Attached&) = delete;

   private:
    Impl& impl_;
    bool outermost_;
  };
};

MixedPrecisionTrainer::MixedPrecisionTrainer(ModelHandle model, TrainerOptions options)
    : impl_(std::make_unique<Impl>(std::move(model), std::move(options))) {}
MixedPrecisionTrainer::~MixedPrecisionTrainer() = default;

TrainSummary MixedPrecisionTrainer::train(train::Loader& loader, train::LossFn loss, TrainOptions options) {
  Impl& impl = *impl_;
  check(options);
  if (!loss) throw Error("to train without a loss", "loss(output, target) -> scalar tensor", "give a loss function");
  if (impl.training)
    throw Error("train() inside train()", "evaluate() and request_stop() in on_step", "train after it ends");
  impl.last_loss = loss;
  if (!options.optimizer)
    options.optimizer = train::make_optimizer(options.optimizer_spec, impl.description.parameters);

  struct Training {
    Impl& impl;
    explicit Training(Impl& i) : impl(i) { impl.training = true; }
    ~Training() {
      impl.training = false;
      impl.stop = false;
    }
  } training(impl);
  const Impl::Attached attached(impl);
  train::Run run({.module = impl.model.module,
                  .forward = impl.model.forward,
                  .loss = std::move(loss),
                  .description = impl.description,
                  .requested = impl.requested,
                  .options = impl.options,
                  .train_options = std::move(options),
                  .loader = loader,
                  .scaler = *impl.scaler,
                  .runtime = *impl.runtime,
                  .audit = impl.sink->audit,
                  .stop = impl.stop});
  return run.run();
}

EvalResult MixedPrecisionTrainer::evaluate(train::Loader& loader, train::LossFn loss) {
  Impl& impl = *impl_;
  if (!loss) loss = impl.last_loss;
  if (!loss) throw Error("to evaluate without a loss", "a loss, or one train() before", "give a loss function");
  const Impl::Attached attached(impl);
  const train::TeeSink::Pause audit_of_training_only(*impl.sink);
  struct Quiet {  // what an evaluation casts must not move the ranges of the training
    engine::Runtime& runtime;
    bool before = runtime.note_ranges(false);
    ~Quiet() { runtime.note_ranges(before); }
  } const quiet{*impl.runtime};
  return train::evaluate(*impl.model.module, impl.model.forward, loss, loader);
}

observe::AuditReport MixedPrecisionTrainer::audit() const { return impl_->sink->audit.report(); }
const PrecisionPlan& MixedPrecisionTrainer::plan() const {
  return impl_->runtime ? impl_->runtime->plan() : impl_->plan;
}
const plan::ModelFacts& MixedPrecisionTrainer::facts() const { return impl_->description.facts; }
void MixedPrecisionTrainer::request_stop() noexcept { impl_->stop = true; }

}  // namespace hpqf
