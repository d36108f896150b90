#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/profile_ops.h"
#include "apps/hpqf/sensitivity_profile.h"
#include "hpqf/base/error.h"

namespace hpqf::app {
namespace {

constexpr const char* kOpsHelp =
    "\nWith --ops: where the time of some training steps goes, op by op.\n"
    "  hpqf profile --ops --model resnet20 --precision int8 --steps 20\n"
    "  hpqf profile --ops --model gpt-mini --precision bf16 --trace trace.json --rows 20\n"
    "  hpqf profile --ops --model lstm-lm --precision fp32 --json";

// Those that the measurement of sensitivity has not.
void add_ops_options(CLI::App& command, ProfileOpsOptions& o) {
  const std::string group = "With --ops";
  command.add_option("--precision", o.precision, "As for hpqf train; default bf16")->group(group);
  command.add_option("--sensitive", o.sensitive, "Layers to keep at fp32, separated by commas")
      ->delimiter(',')
      ->group(group);
  command.add_option("--steps", o.steps, "Steps to profile; default 20")->group(group);
  command.add_option("--warmup", o.warmup, "Steps before them that do not count; default 3")->group(group);
  command.add_option("--threads", o.threads, "Threads to compute with")->group(group);
  command.add_option("--rows", o.rows, "Only the rows that took longest; default: all")->group(group);
  command
      .add_option("--rates", o.rates,
                  "Peak rates of the device from a file (schema hpqf.rates); default: measured now, kept by machine")
      ->group(group);
  command.add_option("--trace", o.trace, "Write a trace for ui.perfetto.dev, at most 64 MB")->group(group);
}

// Error for an option of the one mode in the other.
void check_mode(const CLI::App& command, bool ops) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string& group = option->get_group();
    if (option->count() == 0 || option->get_name() == "--ops") continue;
    const std::string name = option->get_name();
    const bool shared = name == "--model" || name == "--data" || name == "--batch-size" || name == "--seed" ||
                        name == "--json" || name == "--quiet" || name == "--help";
    if (shared || (group == "With --ops") == ops) continue;
    throw Error(fmt::format("hpqf profile {} {} --ops", name, ops ? "with" : "without"),
                ops ? "the options of the group 'With --ops', and --model, --data, --batch-size, --seed"
                    : "options of the measurement of sensitivity",
                ops ? "leave it out, or --ops" : "add --ops, or leave it out");
  }
}

}  // namespace

void add_profile(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "profile", "Per layer: how much the loss suffers from each format; with --ops: where the time goes");
  const auto sensitivity = std::make_shared<SensitivityConfig>();
  const auto ops = std::make_shared<ProfileOpsOptions>();
  const auto by_op = std::make_shared<bool>(false);
  add_sensitivity_options(*command, *sensitivity);
  command->add_flag("--ops", *by_op, "Profile the ops of some training steps instead")->group("With --ops");
  add_ops_options(*command, *ops);
  command->footer(std::string(kSensitivityHelp) + kOpsHelp);
  command->callback([&action, command, sensitivity, ops, by_op] {
    action = [command, sensitivity, ops, by_op] {
      check_mode(*command, *by_op);
      if (!*by_op) return profile_sensitivity(*sensitivity);
      if (sensitivity->model.empty())
        throw Error("to profile without a model", "the name of a reference model", "add --model");
      ops->model = sensitivity->model, ops->data = sensitivity->data, ops->seed = sensitivity->seed;
      if (command->count("--batch-size") > 0) ops->batch_size = sensitivity->batch_size;
      ops->json = sensitivity->json, ops->quiet = sensitivity->quiet;
      return profile_ops(*ops);
    };
  });
}

}  // namespace hpqf::app
