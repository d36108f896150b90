#include "apps/hpqf/sensitivity_profile.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "apps/hpqf/model_data.h"
#include "apps/hpqf/settings.h"
#include "apps/hpqf/train_config.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/engine/sensitivity/model_hessian.h"
#include "hpqf/engine/sensitivity/profile.h"
#include "hpqf/engine/sensitivity/training_score.h"
#include "hpqf/observe/sensitivity_report.h"
#include "hpqf/train/checkpoint.h"
#include "hpqf/train/loader.h"
#include "models/data/dataset.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

namespace sens = engine::sensitivity;

// What the run was trained on, where the command line does not say.
void complete_from_run(SensitivityConfig& c) {
  if (c.run.empty()) return;
  TrainConfig recorded;
  CLI::App reader;
  add_options(reader, recorded);
  const std::string file = (std::filesystem::path(c.run) / "config.json").string();
  apply(read_settings(file), reader, file);
  if (!c.model.empty() && c.model != recorded.model)
    throw Error(fmt::format("--model {} with --run {}", c.model, c.run),
                fmt::format("the model of that run: {}", recorded.model), "leave out --model");
  c.model = recorded.model;
  if (c.data.empty()) c.data = recorded.data;
  if (!c.checkpoint.empty()) return;
  const auto newest = train::CheckpointFolder(c.run + "/checkpoints").newest();
  if (!newest) throw Error(fmt::format("--run {}", c.run), "a run with a checkpoint", "train it first");
  c.checkpoint = *newest;
}

void check(const SensitivityConfig& c) {
  if (c.model.empty()) throw Error("to profile without a model", "--model NAME or --run DIR", "add one of the two");
  if (c.data.empty()) throw Error("to profile without data", models::kDatasets, "add --data");
  if (c.samples < 1 || c.batch_size < 1 || c.hessian_samples < 1)
    throw Error(
        fmt::format("--samples {} --batch-size {} --hessian-samples {}", c.samples, c.batch_size, c.hessian_samples),
        "1 or more", "raise them; 256 samples give a usable score");
  if (!c.out.empty() && !c.out.ends_with(".json") && !c.out.ends_with(".svg"))
    throw Error(fmt::format("--out {}", c.out), "a name that ends in .json or .svg", "choose one of the two");
}

// One line on a terminal; nothing elsewhere.
class Line {
 public:
  explicit Line(bool quiet) : on_(!quiet && isatty(STDERR_FILENO)) {}
  ~Line() { say(""); }
  void say(const std::string& text) const {
    if (on_) fmt::print(stderr, "\r\033[K{}", text);
  }

 private:
  bool on_;
};

}  // namespace

void add_sensitivity_options(CLI::App& command, SensitivityConfig& c) {
  command.add_option("--model", c.model, "resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm")
      ->group("What to measure");
  command.add_option("--data", c.data, fmt::format("{}; its training part is used", models::kDatasets))
      ->group("What to measure");
  command.add_option("--run", c.run, "A run folder: its model, data and newest checkpoint")->group("What to measure");
  command.add_option("--checkpoint", c.checkpoint, "Weights of a run")->group("What to measure");
  command
      .add_option("--formats", c.formats, "e.g. int8,int4,fp8_e5m2,int8[1x128]; default: every format, default blocks")
      ->delimiter(',')
      ->group("How");
  command.add_option("--samples", c.samples, "Images, or windows of text")->capture_default_str()->group("How");
  command.add_option("--batch-size", c.batch_size, "Memory is that of one batch")->capture_default_str()->group("How");
  command.add_option("--seed", c.seed, "Of the choice of samples and of the labels")->group("How");
  command
      .add_flag("--true-labels", c.true_labels, "The data's labels, not drawn ones: scores are then no KL divergence")
      ->group("How");
  command
      .add_flag(
          "--hessian", c.hessian,
          "Also top eigenvalues, traces and HAWQ-V2's Omega of each layer: some hundred times the cost of the scores")
      ->group("How");
  command.add_option("--hessian-samples", c.hessian_samples, "On which the Hessian is taken")
      ->capture_default_str()
      ->group("How");
  command
      .add_flag("--training", c.training,
                "Also what each operand in each format does to the mean weight gradient of 16 batches: 32 training "
                "passes for each of 4 roles and each format")
      ->group("How");
  command.add_flag("--json", c.json, "JSON on standard output, instead of tables")->group("Output");
  command.add_option("--out", c.out, "Also into a file: .json the value, .svg a picture")->group("Output");
  command.add_flag("--quiet", c.quiet, "No progress")->group("Output");
}

int profile_sensitivity(SensitivityConfig c) {
  complete_from_run(c);
  check(c);
  const ModelData loaded = load_model_data(c.model, c.data, 0, c.seed);
  const models::ModelEntry& entry = loaded.entry;
  const models::Dataset& dataset = loaded.dataset;
  const models::Model& model = loaded.model;
  if (!c.checkpoint.empty()) train::load_model(c.checkpoint, *model.module);

  const auto loader = [&](int64_t batch_size) {
    TensorLoader made(dataset.train.data, dataset.train.target,
                      {.batch_size = batch_size,
                       .shuffle = true,
                       .seed = c.seed,
                       .drop_last = true,
                       .transform = [&dataset](train::Batch b) -> train::Batch {
                         return {dataset.prepare_data(b.data), dataset.prepare_target(b.target)};
                       }});
    made.begin_epoch(0);
    return made;
  };
  sens::ProfileOptions options{.samples = c.samples, .seed = c.seed, .sampled_labels = !c.true_labels};
  for (const std::string& text : c.formats) options.formats.push_back(formats::parse_block_format(text));
  const auto loss = [&](const at::Tensor& output, const at::Tensor& target) {
    return models::loss(entry.task, output, target);
  };
  sens::ProfileResult result;
  {
    const Line line(c.quiet);
    int64_t seen = 0;
    TensorLoader data = loader(std::min(c.batch_size, c.samples));
    const auto next = [&]() -> std::optional<sens::Example> {
      auto batch = data.next();
      if (!batch) return std::nullopt;
      line.say(fmt::format("sensitivity: {} of {} samples", seen, c.samples));
      seen += batch->size();
      return sens::Example{batch->data, batch->target};
    };
    result = sens::profile(*model.module, model.forward, loss, next, options);
    if (c.hessian) {
      line.say("Hessian");
      TensorLoader part = loader(c.hessian_samples);
      const auto batch = part.next();
      if (!batch)
        throw Error(fmt::format("--hessian-samples {} of {}", c.hessian_samples, c.data),
                    fmt::format("at most {}", dataset.train.size()), "ask for fewer");
      result.hessian =
          sens::model_hessian(*model.module, result.sensitivity,
                              [&] { return loss(model.forward(batch->data), batch->target); }, {.seed = c.seed});
    }
    if (c.training) {
      TensorLoader part = loader(c.batch_size);
      std::vector<sens::Example> batches;
      for (int64_t i = 0; i < sens::kTrainingBatches; ++i)
        if (auto batch = part.next()) batches.push_back({batch->data, batch->target});
      result.training = sens::training_scores(*model.module, model.forward, loss, batches, options.formats,
                                              [&](const std::string& what) { line.say("training: " + what); });
    }
  }
  if (c.json) {
    fmt::print("{}", plan::to_json(result.sensitivity));
  } else {
    fmt::print("Sensitivity of {} ({} samples of {}, {} labels): measured, nats\n\n{}", c.model,
               result.sensitivity.samples, c.data, result.sensitivity.labels,
               observe::sensitivity_table(result.sensitivity));
    if (result.hessian)
      fmt::print(
          "\nHessian of the whole model: measured, trace {:.4g} +- {:.2g} ({} probes), top eigenvalues {:.4g} "
          "{:.4g}\n{}",
          result.hessian->trace, result.hessian->trace_stderr, result.hessian->probes,
          result.hessian->eigenvalues.front(), result.hessian->eigenvalues.back(),
          observe::hessian_table(result.sensitivity));
    if (!result.training.empty()) fmt::print("\n{}", sens::training_table(result.training));
    fmt::print("\n{}", sens::statistics_table(result.statistics));
  }
  for (const std::string& warning : result.warnings) fmt::print(stderr, "warning: {}\n", warning);
  if (c.checkpoint.empty()) fmt::print(stderr, "warning: fresh weights: the scores are those of an untrained model\n");
  if (!c.out.empty()) {
    base::atomic_write(c.out, c.out.ends_with(".svg") ? observe::sensitivity_picture(result.sensitivity)
                                                      : plan::to_json(result.sensitivity));
    if (!c.json) fmt::print("\nwritten: {}\n", c.out);
  }
  return 0;
}

}  // namespace hpqf::app
