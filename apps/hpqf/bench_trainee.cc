#include "apps/hpqf/bench_trainee.h"

#include <ATen/autocast_mode.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <CLI/CLI.hpp>

#include "apps/hpqf/bench_batch.h"
#include "apps/hpqf/train_config.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/train/optimizer_state.h"

namespace hpqf::app {
namespace {

// torch.autocast(device_type="cpu", dtype=torch.bfloat16)
class AutocastScope {
 public:
  AutocastScope() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~AutocastScope() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
};

// What hpqf train would take.
train::OptimizerSpec default_optimizer(const std::string& model) {
  TrainConfig config;
  CLI::App reader;
  add_options(reader, config);
  apply(model_defaults(model), reader, "the defaults of " + model);
  return {.name = config.optimizer, .lr = config.lr, .momentum = config.momentum, .weight_decay = config.weight_decay};
}

}  // namespace

Trainee::Trainee(const models::ModelEntry& entry, const train::Batch& batch, Arithmetic arithmetic)
    : entry_(entry), batch_(batch), arithmetic_(arithmetic), model_(entry.make({.context = kBenchContext})) {
  model_.module->train();
  optimizer_ = train::make_optimizer(default_optimizer(entry.name), engine::describe(*model_.module).parameters);
}

Trainee::Trainee(const models::ModelEntry& entry, const train::Batch& batch, PrecisionPlan plan)
    : Trainee(entry, batch, Arithmetic::plan) {
  audit_ = std::make_shared<observe::Audit>();
  // Made so that nothing is switched on outside of step(): other trainees run on this thread.
  runtime_ = std::make_unique<engine::Runtime>(engine::describe(*model_.module), std::move(plan),
                                               engine::RuntimeOptions{.events = audit_});
}

Trainee::~Trainee() = default;

at::Tensor Trainee::forward_loss() { return models::loss(entry_.task, model_.forward(batch_.data), batch_.target); }

void Trainee::step() {
  optimizer_->zero_grad();
  at::Tensor loss;
  if (arithmetic_ == Arithmetic::torch_autocast) {
    const AutocastScope autocast;
    loss = forward_loss();
  } else if (arithmetic_ == Arithmetic::plan) {
    const engine::Scope planned;
    loss = forward_loss();
  } else {
    loss = forward_loss();
  }
  loss.backward();
  optimizer_->step();
  loss_ = loss.item<double>();
}

std::string Trainee::warm_up() {
  step();
  const std::string settled = runtime_ ? engine::settle(*runtime_) : "";
  step();
  if (audit_) audit_->clear();
  return settled;
}

std::vector<observe::AuditReport::Share> Trainee::shares() const {
  return audit_ ? audit_->report().shares() : std::vector<observe::AuditReport::Share>{};
}

}  // namespace hpqf::app
