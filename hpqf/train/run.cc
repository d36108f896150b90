#include "hpqf/train/run.h"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/auto_choice.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/sensitivity/frozen_state.h"
#include "hpqf/engine/sensitivity/profile.h"

namespace hpqf::train {

Run::Run(RunParts parts) : parts_(std::move(parts)) {
  TrainOptions& options = parts_.train_options;
  if (options.epochs == 0 && options.steps == 0) options.epochs = 1;
  base_lr_ = learning_rates(*options.optimizer);
  schedule_ = resolved_schedule();
  lr_factor(schedule_, schedule_.warmup_steps);  // an impossible schedule is an Error now, not after the warm-up
  if (!options.out_dir.empty()) folder_.emplace(options.out_dir, options.keep_checkpoints, options.resume);
  start_monitors();
  step_.emplace(StepParts{.forward = parts_.forward,
                          .loss = parts_.loss,
                          .parameters = parts_.description.parameters,
                          .optimizer = options.optimizer.get(),
                          .scaler = &parts_.scaler,
                          .runtime = &parts_.runtime,
                          .audit = &parts_.audit,
                          .monitor = gradients_ ? &*gradients_ : nullptr,
                          .fallback = parts_.options.fallback,
                          .schedule = schedule_,
                          .base_lr = base_lr_,
                          .max_grad_norm = parts_.options.max_grad_norm,
                          .settle_after = measured() ? settle_after() : 1});
}

TrainSummary Run::run() {
  // The optimizer is the user's: whatever happens, it gets its own learning rates back.
  struct RestoreRates {
    Run& run;
    ~RestoreRates() { set_learning_rates(*run.parts_.train_options.optimizer, run.base_lr_, {}, 0); }
  } restore{*this};
  const int64_t begin = base::steady_ns();
  start();
  while (!finished()) {
    const std::vector<Batch> batches = next_batches();
    if (batches.empty()) {
      if (parts_.loader.state().batch == 0)
        throw Error("to train on a loader without batches", "at least one batch", "check the data set");
      begin_epoch(epoch_ + 1);
      continue;
    }
    if (step_->counters.step + 1 >= settle_after()) measure_sensitivity();
    after_step(step_->run(batches));
  }
  summary_.stopped = parts_.stop;
  summary_.steps = step_->counters.step;
  summary_.applied = step_->counters.applied;
  summary_.skipped = summary_.steps - summary_.applied;
  summary_.seconds = static_cast<double>(base::steady_ns() - begin) * 1e-9;
  if (folder_) {
    checkpoint();
    folder_->write_audit(parts_.audit.report());
  }
  return std::move(summary_);
}

void Run::start() {
  if (folder_ && folder_->resume_from()) {
    resume(*folder_->resume_from());
  } else {
    if (parts_.options.seed) seed_generator(*parts_.options.seed);
    begin_epoch(0);
  }
  if (!folder_) return;
  if (gradients_) gradients_->resume_after(summary_.resumed_from);
  if (monitor_) monitor_->resume_after(summary_.resumed_from);
  folder_->start_metrics(summary_.resumed_from);
  folder_->write_plan(parts_.runtime.plan(), parts_.description.facts);
}

void Run::resume(const std::string& path) {
  // Read before the model is touched: another plan is another run.
  Snapshot snapshot = read_snapshot(path);
  if (measured()) {
    parts_.requested = snapshot.requested;  // another measurement could choose another plan; the run keeps its own
  } else if (!(snapshot.requested == parts_.requested)) {
    throw Error(fmt::format("to resume {} under another plan:\n{}", path,
                            plan::to_string(snapshot.requested.diff(parts_.requested, parts_.description.facts))),
                "the plan the run was started with",
                "resume with the same precision and sensitive layers, or start a new run");
  }
  snapshot = load_checkpoint(path, *parts_.module, *parts_.train_options.optimizer);
  if (snapshot.base_lr != base_lr_ || !(snapshot.schedule == schedule_)) {
    summary_.notes.push_back(
        "learning rate or schedule differ from those of the checkpoint: the new ones hold from here on");
  }
  step_->counters = snapshot.counters;
  step_->fallback = snapshot.fallback;
  parts_.scaler.set_state(snapshot.loss_scale);
  parts_.audit.restore(std::move(snapshot.audit));
  parts_.runtime.apply(snapshot.plan);
  parts_.runtime.set_ranges(std::move(snapshot.ranges));
  if (parts_.loader.draws_from_torch() && snapshot.epoch_generator.defined())
    set_generator_state(snapshot.epoch_generator);
  parts_.loader.restore(snapshot.position);
  set_generator_state(snapshot.generator);
  epoch_ = snapshot.position.epoch;
  epoch_generator_ = snapshot.epoch_generator;
  checkpointed_step_ = snapshot.counters.step;
  summary_.checkpoint = path;
  summary_.resumed_from = snapshot.counters.step;
}

bool Run::measured() const { return engine::unsettled(parts_.requested); }

// An "auto" plan waits for this many steps in fp32: the running statistics of batch norm, with the usual momentum of
// 0.1, have then moved 88 % of the way, and the weights have left their first random state. Short runs wait for a
// tenth.
int64_t Run::settle_after() const {
  constexpr int64_t kUsual = 20;
  const TrainOptions& o = parts_.train_options;
  int64_t total = o.steps;
  if (const int64_t batches = parts_.loader.batches(); o.epochs > 0 && batches > 0) {
    const int64_t steps =
        o.epochs * ((batches + parts_.options.accumulate_steps - 1) / parts_.options.accumulate_steps);
    total = total > 0 ? std::min(total, steps) : steps;
  }
  return total > 0 ? std::clamp<int64_t>(total / 10, 1, kUsual) : kUsual;
}

// What the formats that "auto" may choose would cost the loss, on the batches that come next; the loader then goes
// back. A model or loss that cannot be measured is no reason to stop: the choice is then made by speed alone.
void Run::measure_sensitivity() {
  if (!measured() || step_->sensitivity || !engine::unsettled(parts_.runtime.plan())) return;
  const std::vector<BlockFormat> formats = engine::auto_formats();
  if (formats.empty()) return;
  constexpr int64_t kSamples = 128;
  const LoaderState position = parts_.loader.state();
  const at::Tensor generator = generator_state();
  const int64_t begin = base::steady_ns();
  try {
    const engine::sensitivity::FrozenState frozen(*parts_.module);
    engine::sensitivity::Profile profile(parts_.runtime, {.formats = formats, .samples = kSamples});
    while (!profile.enough()) {
      const std::optional<Batch> batch = parts_.loader.next();
      if (!batch) break;
      const at::Tensor output = parts_.forward(batch->data);
      profile.add(parts_.loss(output, batch->target), output, batch->target, batch->size());
    }
    step_->sensitivity = profile.finish().sensitivity;
    summary_.notes.push_back(fmt::format("auto: sensitivity measured on {} samples in {:.1f} s",
                                         step_->sensitivity->samples,
                                         static_cast<double>(base::steady_ns() - begin) * 1e-9));
  } catch (const Error& e) {
    summary_.notes.push_back(fmt::format("auto: chosen by speed alone; {}: {}", e.asked(), e.allowed()));
  }
  if (parts_.loader.draws_from_torch() && epoch_generator_.defined()) set_generator_state(epoch_generator_);
  parts_.loader.restore(position);
  set_generator_state(generator);
}

bool Run::finished() const {
  const TrainOptions& o = parts_.train_options;
  return parts_.stop || (o.steps > 0 && step_->counters.step >= o.steps) || (o.epochs > 0 && epoch_ >= o.epochs);
}

std::vector<Batch> Run::next_batches() {
  std::vector<Batch> batches;
  while (static_cast<int64_t>(batches.size()) < parts_.options.accumulate_steps) {
    std::optional<Batch> batch = parts_.loader.next();
    if (!batch) break;
    batches.push_back(std::move(*batch));
  }
  return batches;
}

void Run::begin_epoch(int64_t epoch) {
  epoch_ = epoch;
  if (finished()) return;  // a range would be read for nothing
  if (parts_.loader.draws_from_torch()) epoch_generator_ = generator_state();
  parts_.loader.begin_epoch(epoch);
}

void Run::after_step(StepResult result) {
  result.epoch = epoch_;
  result.unix_seconds = base::unix_seconds();
  summary_.last_loss = result.loss;
  if (folder_) folder_->step(result);
  for (const std::string& change : result.changes)
    summary_.notes.push_back(fmt::format("step {}: {}", result.step, change));
  if (folder_ && parts_.runtime.plan().epoch() != result.plan_epoch) {
    folder_->write_plan(parts_.runtime.plan(), parts_.description.facts);
  }
  observe(result);
  const int64_t every = parts_.train_options.checkpoint_every;
  if (folder_ && every > 0 && result.step % every == 0) checkpoint();
  if (parts_.train_options.on_step) parts_.train_options.on_step(result);
}

void Run::start_monitors() {
  const TrainOptions& options = parts_.train_options;
  const auto in_folder = [&](const char* name) { return options.out_dir.empty() ? "" : options.out_dir + "/" + name; };
  if (options.monitor_gradients > 0)
    gradients_.emplace(
        GradientMonitorOptions{.every = options.monitor_gradients, .path = in_folder("gradients.jsonl")});
  if (!options.monitor) return;
  observe::MonitorOptions monitor = *options.monitor;
  if (monitor.path.empty()) monitor.path = in_folder("monitor.jsonl");
  monitor_.emplace(std::move(monitor));
}

void Run::observe(const StepResult& result) {
  const bool looked = gradients_ && gradients_->due(result.step);
  if (looked) {
    for (const observe::Finding& finding : gradients_->findings())
      summary_.notes.push_back(fmt::format("step {}: {}: {}", result.step, name(finding.trouble), finding.text));
    for (std::string& note : gradients_->take_notes()) summary_.notes.push_back(std::move(note));
  }
  if (!monitor_) return;
  std::optional<observe::AuditReport> audit;
  if (monitor_->due(result.step)) audit = parts_.audit.report();
  observe::StepFacts facts{.step = result.step,
                           .epoch = result.epoch,
                           .samples = result.samples,
                           .loss = result.loss,
                           .seconds = result.seconds,
                           .applied = result.applied,
                           .loss_scale = result.loss_scale,
                           .grad_norm = result.grad_norm};
  const observe::MonitorVerdict verdict =
      looked ? monitor_->observe(facts, audit ? &*audit : nullptr, gradients_->latest(), gradients_->findings())
             : monitor_->observe(facts, audit ? &*audit : nullptr);
  for (const observe::Alert& alert : verdict.alerts) {
    if (alert.action != observe::AlertAction::log)
      summary_.notes.push_back(fmt::format("step {}: alert {}", result.step, alert.text));
    if (parts_.train_options.on_alert) parts_.train_options.on_alert(alert);
  }
  if (verdict.stop) parts_.stop = true;
}

void Run::checkpoint() {
  if (checkpointed_step_ == step_->counters.step) return;
  Snapshot snapshot;
  snapshot.counters = step_->counters;
  snapshot.position = parts_.loader.state();
  snapshot.loss_scale = parts_.scaler.state();
  snapshot.fallback = step_->fallback;
  snapshot.ranges = parts_.runtime.ranges();
  snapshot.plan = parts_.runtime.plan();
  snapshot.requested = parts_.requested;
  snapshot.schedule = schedule_;
  snapshot.base_lr = base_lr_;
  snapshot.audit = parts_.audit.report();
  snapshot.generator = generator_state();
  snapshot.epoch_generator = epoch_generator_;
  summary_.checkpoint = folder_->checkpoints().save(snapshot, *parts_.module, *parts_.train_options.optimizer);
  checkpointed_step_ = step_->counters.step;
}

Schedule Run::resolved_schedule() const {
  const TrainOptions& options = parts_.train_options;
  Schedule schedule = options.schedule;
  if (schedule.kind == ScheduleKind::constant || schedule.total_steps > 0) return schedule;
  constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  int64_t total = options.steps > 0 ? options.steps : kUnlimited;
  if (const int64_t batches = parts_.loader.batches(); options.epochs > 0 && batches > 0) {
    const int64_t accumulate = parts_.options.accumulate_steps;
    total = std::min(total, (batches + accumulate - 1) / accumulate * options.epochs);
  }
  if (total == kUnlimited) {
    throw Error("a cosine schedule over a loader that does not know its length", "a known number of steps",
                "set steps, or schedule.total_steps");
  }
  schedule.total_steps = total;
  return schedule;
}

}  // namespace hpqf::train
