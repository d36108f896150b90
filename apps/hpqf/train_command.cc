#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/out_folder.h"
#include "apps/hpqf/settings.h"
#include "apps/hpqf/train_config.h"
#include "apps/hpqf/train_run.h"
#include "hpqf/base/error.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  hpqf train --model resnet20 --data fashion-mnist --precision bf16 --sensitive 'conv1,fc' --epochs 2\n"
    "  hpqf train --model gpt-mini --precision int8 --sensitive head --steps 500 --out runs/gpt\n"
    "  hpqf train --model lstm-lm --data text:book.txt.gz --precision fp16 --loss-scale dynamic --schedule cosine\n"
    "  hpqf train --model resnet20 --plan mine.json --strict=native\n"
    "  hpqf train --config run.toml --lr 0.05\n"
    "  hpqf train --resume --out runs/gpt\n"
    "The run folder holds plan.json, metrics.jsonl, audit.json, config.json, result.json and checkpoints/.";

// Who wins: the command line, --config, the run that is resumed, the defaults of the model.
int train(CLI::App& command, TrainConfig& config) {
  if (!config.config.empty()) apply(read_settings(config.config), command, config.config);
  if (config.resume && config.out.empty()) {
    throw Error("--resume without --out", "the folder of the run to go on with", "add --out DIR");
  }
  bool plan_given = false;
  for (const char* option : {"--precision", "--sensitive", "--plan"}) {
    plan_given = plan_given || command.get_option(option)->count() > 0;
  }
  if (config.resume) {
    const OutFolder folder(config.out, true);
    const std::string file = folder.file("config.json"), asked = config.model;
    TrainConfig recorded;
    CLI::App reader;
    add_options(reader, recorded);
    const Settings settings = read_settings(file);
    apply(settings, reader, file);
    if (!asked.empty() && asked != recorded.model) {
      throw Error(fmt::format("to resume {} with model '{}'", config.out, asked),
                  fmt::format("the model the run was started with: {}", recorded.model),
                  "leave out --model, or start a new run in another folder");
    }
    apply(settings, command, file);
  }
  if (config.model.empty()) {
    std::string names;
    for (const models::ModelEntry& entry : models::all_models()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
    }
    throw Error("to train without a model", names, "add --model NAME");
  }
  apply(model_defaults(config.model), command, "the defaults of " + config.model);
  check(config);
  if (config.out.empty()) config.out = default_out(config.model);
  return run_training(config, plan_given);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a reference model under a precision plan");
  const auto config = std::make_shared<TrainConfig>();
  add_options(*command, *config);
  command->footer(kExamples);
  command->callback([&action, command, config] { action = [command, config] { return train(*command, *config); }; });
}

}  // namespace hpqf::app
