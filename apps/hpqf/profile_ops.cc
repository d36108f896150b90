#include "apps/hpqf/profile_ops.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <charconv>
#include <memory>
#include <optional>

#include "apps/hpqf/model_data.h"
#include "apps/hpqf/progress.h"
#include "apps/hpqf/settings.h"
#include "apps/hpqf/train_config.h"
#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/census.h"
#include "hpqf/engine/peaks.h"
#include "hpqf/observe/profile/profiler.h"
#include "hpqf/train/trainer.h"
#include "models/data/dataset.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

// What `hpqf train` would use for this model.
std::string default_of(const std::string& model, const char* key) {
  for (const auto& [name, values] : model_defaults(model))
    if (name == key && !values.empty()) return values.front();
  return "";
}

double number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

int profile_ops(const ProfileOpsOptions& o) {
  if (o.steps < 1 || o.warmup < 1)
    throw Error(fmt::format("--steps {} --warmup {}", o.steps, o.warmup), "1 or more of both",
                "the first step packs weights and settles an automatic plan: it is never typical");
  models::find_model(o.model);  // Error before anything is loaded
  if (o.threads > 0) at::set_num_threads(o.threads);
  const auto batch = o.batch_size > 0 ? o.batch_size : static_cast<int64_t>(number(default_of(o.model, "batch-size")));
  const ModelData loaded = load_model_data(o.model, o.data.empty() ? default_of(o.model, "data") : o.data,
                                           batch * (o.steps + o.warmup), o.seed);
  const models::ModelEntry& entry = loaded.entry;
  const models::Dataset& dataset = loaded.dataset;
  const models::Model& model = loaded.model;
  const observe::RateTable rates =
      o.rates.empty() ? engine::measure_peaks() : observe::RateTable::from_json(base::read_file(o.rates), o.rates);

  const auto profiler = std::make_shared<observe::Profiler>(
      observe::ProfilerOptions{.rates = rates, .trace_events = o.trace.empty() ? 0 : 250'000, .clock = {}});
  MixedPrecisionTrainer trainer(
      ModelHandle{model.module, model.forward},
      {.precision = o.precision, .sensitive_layers = o.sensitive, .events = profiler, .seed = o.seed});
  TensorLoader loader(dataset.train.data, dataset.train.target,
                      {.batch_size = batch,
                       .shuffle = true,
                       .seed = o.seed,
                       .n_classes = dataset.classes,
                       .transform = [&dataset](Batch b) -> Batch {
                         return {dataset.prepare_data(b.data), dataset.prepare_target(b.target)};
                       }});
  const train::LossFn loss = [&](const at::Tensor& output, const at::Tensor& target) {
    return models::loss(entry.task, output, target);
  };

  std::optional<engine::OpCensus> census;
  int64_t census_began = 0;
  model.module->train();
  {
    Progress progress(progress_style(o.quiet || o.json), o.steps + o.warmup);
    TrainOptions options{.steps = o.steps + o.warmup,
                         .optimizer_spec = {.name = default_of(o.model, "optimizer"),
                                            .lr = number(default_of(o.model, "lr")),
                                            .momentum = number(default_of(o.model, "momentum"))}};
    options.on_step = [&](const StepResult& result) {
      progress.step(result);
      profiler->step();
      if (result.step == o.warmup) {
        census.emplace();
        census_began = base::steady_ns();
        profiler->start();
      } else if (result.step == o.warmup + o.steps) {
        profiler->stop();
        profiler->add_uncounted(census->finish(), static_cast<double>(base::steady_ns() - census_began) * 1e-9);
      }
    };
    trainer.train(loader, loss, std::move(options));
  }
  const observe::ProfileReport report = profiler->report();
  if (!o.trace.empty()) profiler->write_trace(o.trace);
  if (o.json) {
    fmt::print("{}\n", report.to_json());
    return 0;
  }
  fmt::print("{}, batch {}, {}; times measured, FLOPs from shapes\n\n{}", o.model, batch, o.precision,
             report.table(o.rows));
  if (!o.trace.empty()) fmt::print("trace: {} (open it in ui.perfetto.dev)\n", o.trace);
  return 0;
}

}  // namespace hpqf::app
