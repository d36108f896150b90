#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/cost_config.h"

namespace hpqf::app {

void add_cost(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("cost", "Time, energy and money of a training, and what a precision saves");
  const auto config = std::make_shared<CostConfig>();
  add_options(*command, *config);
  command->footer(
      "Figures of --model and --example are modelled from the device database; each says what it rests on. Those of\n"
      "--run are measured, over all parts of a resumed run.\n"
      "Examples:\n"
      "  hpqf cost --model resnet50 --device nvidia-h100-sxm --gpus 8 --precision fp32,bf16,fp8 --epochs 90\n"
      "  hpqf cost --model gpt2 --device nvidia-a100-sxm-80gb,nvidia-h100-sxm --tokens 10e9 --against tf32 --price "
      "2.10\n"
      "  hpqf cost --model gpt-mini --device this --precision fp32,int8 --steps 10000 --price 0.05\n"
      "  hpqf cost --run runs/first --price 0.40 --against runs/fp32\n"
      "  hpqf cost --run runs/first --device nvidia-l4 --spot --target 0.35\n"
      "  hpqf cost --example gpt-100b");
  command->callback([&action, config] {
    action = [config] {
      check(*config);
      if (!config->run.empty()) return cost_of_run(*config);
      if (!config->example.empty()) return cost_of_example(*config);
      return cost_of_model(*config);
    };
  });
}

}  // namespace hpqf::app
