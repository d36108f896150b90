#include "apps/hpqf/train_run.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/hpqf/model_data.h"
#include "apps/hpqf/out_folder.h"
#include "apps/hpqf/plan_files.h"
#include "apps/hpqf/progress.h"
#include "apps/hpqf/stop_signal.h"
#include "apps/hpqf/train_exports.h"
#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/train/checkpoint.h"
#include "hpqf/train/trainer.h"
#include "models/data/dataset.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

TensorLoader loader(const models::Dataset& dataset, const models::Split& split, int64_t batch_size, bool shuffle,
                    uint64_t seed) {
  return TensorLoader(split.data, split.target,
                      {.batch_size = batch_size,
                       .shuffle = shuffle,
                       .seed = seed,
                       .n_classes = dataset.classes,
                       .transform = [&dataset](Batch batch) -> Batch {
                         return {dataset.prepare_data(batch.data), dataset.prepare_target(batch.target)};
                       }});
}

PrecisionPlan make_plan(const TrainConfig& c, bool plan_given, const plan::ModelFacts& facts) {
  if (c.resume && !plan_given) {
    const auto newest = train::CheckpointFolder(c.out + "/checkpoints").newest();
    if (newest) return train::read_snapshot(*newest).requested;
  }
  PrecisionPlan plan = !c.plan.empty() ? read_plan(c.plan).plan : engine::requested_plan(c.precision, c.sensitive);
  plan.check(facts);
  return plan;
}

std::optional<plan::LossScaleOptions> loss_scale(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "dynamic") return plan::LossScaleOptions{};
  if (text == "off") return plan::LossScaleOptions{.enabled = false};
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    throw Error(fmt::format("--loss-scale {}", text), "a number greater than 0, dynamic, or off",
                "correct --loss-scale");
  }
  return plan::LossScaleOptions{.init = value, .floor = value, .cap = value};  // floor = cap: it never moves
}

engine::Strict strict(const std::string& text) {
  return text.empty() ? engine::Strict::off : text == "native" ? engine::Strict::native : engine::Strict::formats;
}

int64_t total_steps(const TrainConfig& c, int64_t batches) {
  const int64_t by_epochs = c.epochs > 0 ? c.epochs * ((batches + c.accumulate - 1) / c.accumulate) : 0;
  if (c.steps == 0 || by_epochs == 0) return std::max(c.steps, by_epochs);
  return std::min(c.steps, by_epochs);
}

// The quality line, and result.json.
void report_result(const OutFolder& folder, models::Task task, const EvalResult& result, const TrainSummary& summary) {
  nlohmann::ordered_json json{{"schema", "hpqf.result"},
                              {"version", 1},
                              {"task", name(task)},
                              {"loss", result.loss},
                              {"samples", result.samples}};
  if (classifies(task)) {
    const double accuracy = result.accuracy.value_or(0);
    fmt::print("test accuracy {:.2f} %, loss {:.4f}, {} {}\n", 100 * accuracy, result.loss, result.samples, name(task));
    json["accuracy"] = accuracy;
  } else {
    const double perplexity = std::exp(result.loss);
    fmt::print("validation loss {:.4f}, perplexity {:.3f} per byte, {} windows of {} bytes\n", result.loss, perplexity,
               result.samples, kContext);
    json["perplexity"] = perplexity;
  }
  fmt::print("{} steps in {}, {} of them skipped\n", summary.steps - summary.resumed_from, clock_text(summary.seconds),
             summary.skipped);
  json["steps"] = summary.steps;
  json["skipped"] = summary.skipped;
  json["seconds"] = summary.seconds;
  base::atomic_write(folder.file("result.json"), json.dump(1) + "\n");
}

int report_stop(const TrainConfig& c, const TrainSummary& summary) {
  fmt::print("stopped after step {}; checkpoint {}\n", summary.steps, summary.checkpoint);
  fmt::print("to go on: hpqf train --resume --out {}\n", c.out);
  const int signal = StopSignal::received();
  return signal > 0 ? 128 + signal : 1;  // no signal: an alert rule with the action stop
}

std::optional<observe::MonitorOptions> monitor_options(const TrainConfig& c, int64_t samples_per_epoch) {
  if (c.monitor == 0) return std::nullopt;
  observe::MonitorOptions options;
  options.every = c.monitor;
  if (!c.alerts.empty()) options.rules = observe::alert_rules_from_json(base::read_file(c.alerts), c.alerts);
  options.reference = c.reference;
  if (c.price_per_hour > 0) options.cost.price_per_hour = c.price_per_hour;
  options.cost.price_source = "--price-per-hour";
  options.cost.samples_per_epoch = samples_per_epoch;
  return options;
}

}  // namespace

int run_training(const TrainConfig& c, bool plan_given) {
  OutFolder folder(c.out, c.resume);
  if (c.threads > 0) at::set_num_threads(c.threads);
  const ModelData loaded = load_model_data(c.model, c.data, c.limit, c.seed);
  const models::ModelEntry& entry = loaded.entry;
  const models::Dataset& dataset = loaded.dataset;
  const models::Model& model = loaded.model;
  const ModelHandle handle{model.module, model.forward};
  const plan::ModelFacts facts = engine::describe(*model.module).facts;

  const PrecisionPlan plan = make_plan(c, plan_given, facts);
  const std::optional<plan::LossScaleOptions> scale = loss_scale(c.loss_scale);
  const train::Schedule schedule{.kind = train::parse_schedule(c.schedule), .warmup_steps = c.warmup};
  MixedPrecisionTrainer trainer(handle, {.plan = plan,
                                         .loss_scale = scale,
                                         .range = {.enabled = c.range_compensation},
                                         .max_grad_norm = c.clip,
                                         .accumulate_steps = c.accumulate,
                                         .strict = strict(c.strict),
                                         .seed = c.seed});
  TensorLoader training = loader(dataset, dataset.train, c.batch_size, /*shuffle=*/true, c.seed);
  TensorLoader validation = loader(dataset, dataset.validation, std::max<int64_t>(c.batch_size, 64), false, 0);
  const train::LossFn loss = [&](const at::Tensor& output, const at::Tensor& target) {
    return models::loss(entry.task, output, target);
  };
  std::optional<base::LineAppender> evaluations;
  const auto record = [&](const StepResult& at, const EvalResult& quality) {
    observe::EvaluationRecord evaluation{at.step,          at.epoch,        quality.loss,
                                         quality.accuracy, quality.samples, base::unix_seconds()};
    if (!classifies(entry.task)) evaluation.accuracy.reset();  // of next bytes: perplexity says more
    if (!evaluations) evaluations.emplace(folder.file("evaluations.jsonl"));
    evaluations->append(observe::evaluation_line(evaluation));
    return evaluation;
  };
  const auto write_config = [&] { base::atomic_write(folder.file("config.json"), to_json(c)); };

  model.module->train();
  TrainSummary summary;
  StepResult last;
  Progress* live = nullptr;  // while it draws, warnings go above its line
  std::optional<TrainExports> exports;
  {
    Progress progress(progress_style(c.quiet), total_steps(c, training.batches()));
    live = &progress;
    bool started = false;
    TrainOptions options{
        .epochs = c.epochs,
        .steps = c.steps,
        .optimizer_spec = {.name = c.optimizer, .lr = c.lr, .momentum = c.momentum, .weight_decay = c.weight_decay},
        .schedule = schedule,
        .out_dir = c.out,
        .checkpoint_every = c.checkpoint_every,
        .resume = c.resume,
        .monitor_gradients = c.monitor_gradients,
        .monitor = monitor_options(c, training.batches() * c.batch_size)};
    options.on_alert = [&](const observe::Alert& alert) { progress.note("alert " + alert.text); };
    options.on_step = [&](const StepResult& result) {
      if (!started && c.resume) write_config();  // not earlier: a resume that is refused changes nothing
      started = true;
      folder.keep();
      for (const std::string& change : result.changes) progress.note(fmt::format("step {}: {}", result.step, change));
      progress.step(result);
      exports->step(result, [&] { return trainer.audit(); });
      last = result;
      const bool due = c.eval_every > 0 && result.step % c.eval_every == 0;
      if (due) exports->evaluation(record(result, trainer.evaluate(validation, loss)));
    };
    // A new run's before the first step: killed at any time, it can be resumed from its folder alone.
    folder.create();
    if (!c.resume) write_config();
    const StopSignal on_signal(trainer);
    const int64_t tokens = entry.task == models::Task::images ? 0 : dataset.train.data.size(1);
    exports.emplace(c, tokens, [&](const std::string& text) {
      if (live)
        live->warn(text);
      else
        fmt::print(stderr, "{}\n", text);
    });
    summary = trainer.train(training, loss, std::move(options));
    live = nullptr;
  }
  folder.keep();
  const observe::AuditReport audit = trainer.audit();
  if (summary.stopped) {
    exports->finish(summary, audit);
    return report_stop(c, summary);
  }
  model.module->eval();
  const EvalResult quality = trainer.evaluate(validation, loss);
  report_result(folder, entry.task, quality, summary);
  if (last.step > 0) exports->evaluation(record(last, quality));  // 0: a resume of a run that was through
  exports->finish(summary, audit);
  fmt::print("\n{}", c.quiet ? audit.totals() : audit.table());
  if (const std::string exported = exports->where(); !exported.empty()) fmt::print("\nexported to {}\n", exported);
  fmt::print("\nrun folder {}: plan.json metrics.jsonl audit.json config.json result.json checkpoints/\n", c.out);
  return 0;
}

}  // namespace hpqf::app
