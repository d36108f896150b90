#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/profile_ops.h"
#include "hpqf/base/error.h"

namespace hpqf::app {

void add_profile(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("profile", "Where the time of a training step goes, op by op");
  const auto options = std::make_shared<ProfileOpsOptions>();
  const auto ops = std::make_shared<bool>(false);
  command->add_flag("--ops", *ops, "Profile the ops of some training steps");
  command->add_option("--model", options->model, "resnet20, gpt-mini or lstm-lm");
  command->add_option("--data", options->data, "As for hpqf train; default: the model's own");
  command->add_option("--precision", options->precision, "As for hpqf train; default bf16");
  command->add_option("--sensitive", options->sensitive, "Layers to keep at fp32, separated by commas")->delimiter(',');
  command->add_option("--steps", options->steps, "Steps to profile; default 20");
  command->add_option("--warmup", options->warmup, "Steps before them that do not count; default 3");
  command->add_option("--batch-size", options->batch_size);
  command->add_option("--seed", options->seed);
  command->add_option("--threads", options->threads);
  command->add_option("--rows", options->rows, "Only the rows that took longest; default: all");
  command->add_option(
      "--rates", options->rates,
      "Peak rates of the device from a file (schema hpqf.rates); default: measured now, kept by machine");
  command->add_option("--trace", options->trace, "Write a trace for ui.perfetto.dev, at most 64 MB");
  command->add_flag("--json", options->json, "Everything as JSON, roofline points too");
  command->add_flag("--quiet", options->quiet, "No progress");
  command->footer(
      "Examples:\n"
      "  hpqf profile --ops --model resnet20 --precision int8 --steps 20\n"
      "  hpqf profile --ops --model gpt-mini --precision bf16 --trace trace.json --rows 20\n"
      "  hpqf profile --ops --model lstm-lm --precision fp32 --json");
  command->callback([&action, options, ops] {
    action = [options, ops] {
      if (!*ops) throw Error("hpqf profile without --ops", "--ops: the ops of some training steps", "add --ops");
      if (options->model.empty())
        throw Error("to profile without a model", "resnet20, gpt-mini, lstm-lm", "add --model");
      return profile_ops(*options);
    };
  });
}

}  // namespace hpqf::app
