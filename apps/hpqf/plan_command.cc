#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/plan_allocate.h"
#include "apps/hpqf/plan_files.h"
#include "apps/hpqf/plan_history.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/explain.h"
#include "hpqf/plan/plan.h"

namespace hpqf::app {
namespace {

struct Files {
  std::string file, other, model;
};

int show(const Files& files) {
  const PlanFile plan = read_plan(files.file);
  fmt::print("{}", observe::explain(plan.plan, files.model.empty() ? plan.facts : facts_of(files.model)));
  return 0;
}

int diff(const Files& files) {
  const PlanFile a = read_plan(files.file), b = read_plan(files.other);
  plan::ModelFacts facts = files.model.empty() ? a.facts : facts_of(files.model);
  if (facts.layers.empty()) facts = b.facts;
  if (facts.layers.empty()) {
    throw Error(fmt::format("to compare {} and {} layer by layer", files.file, files.other),
                "a plan file that names its layers, as in a run folder, or a model",
                "add --model NAME: the model whose layers to compare");
  }
  const plan::PlanDiff changes = a.plan.diff(b.plan, facts);
  if (changes.empty()) {
    fmt::print("no difference in the {} layers of {}\n", facts.layers.size(), facts.model);
  } else {
    fmt::print("{}\n", plan::to_string(changes));
  }
  return 0;
}

int check(const Files& files) {
  const plan::ModelFacts facts = facts_of(files.model);
  read_plan(files.file).plan.check(facts);
  fmt::print("{} fits {}: every pattern names at least one of its {} layers\n", files.file, files.model,
             facts.layers.size());
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* plan = app.add_subcommand("plan", "Show, compare, check, allocate and replay plans");
  plan->require_subcommand(1);
  plan->footer(
      "Examples:\n"
      "  hpqf plan show runs/first/plan.json\n"
      "  hpqf plan diff a.json b.json\n"
      "  hpqf plan check mine.json --model resnet20\n"
      "  hpqf plan allocate sensitivity.json --budget bits=4.0 --out plan.json\n"
      "  hpqf plan replay runs/first");
  const auto files = std::make_shared<Files>();

  CLI::App* command = plan->add_subcommand("show", "How the rules of a plan resolve, layer by layer");
  command->add_option("FILE", files->file, "Plan file or run folder")->required();
  command->add_option("--model", files->model, "Resolve for this model instead of the layers in the file");
  command->footer("Example:\n  hpqf plan show mine.json --model gpt-mini");
  command->callback([&action, files] { action = [files] { return show(*files); }; });

  command = plan->add_subcommand("diff", "What changes from plan A to plan B, layer by layer");
  command->add_option("A", files->file, "Plan file or run folder")->required();
  command->add_option("B", files->other, "Plan file or run folder")->required();
  command->add_option("--model", files->model, "Compare on this model instead of the layers in the files");
  command->footer("Example:\n  hpqf plan diff runs/first runs/second");
  command->callback([&action, files] { action = [files] { return diff(*files); }; });

  command = plan->add_subcommand("check", "Whether every pattern of a plan names a layer of a model");
  command->add_option("FILE", files->file, "Plan file or run folder")->required();
  command->add_option("--model", files->model, "resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm")->required();
  command->footer("Example:\n  hpqf plan check mine.json --model resnet20");
  command->callback([&action, files] { action = [files] { return check(*files); }; });

  add_plan_allocate(*plan, action);
  add_plan_replay(*plan, action);
}

}  // namespace hpqf::app
