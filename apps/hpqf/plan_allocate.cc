#include "apps/hpqf/plan_allocate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/front_picture.h"
#include "hpqf/observe/text_table.h"
#include "hpqf/plan/allocate/allocate.h"
#include "hpqf/plan/allocate/threshold.h"

namespace hpqf::app {
namespace {

struct AllocateConfig {
  std::string file, budget, out, front, plot, times, minimise = "bytes", low = "int4", high = "fp16", measure = "score";
  std::vector<std::string> weights, inputs, locks;
  double standard_errors = 1, forbid_above = -1, threshold = -1;
  int front_points = 64;
  bool training = false, json = false, absolute = false;
};

std::vector<BlockFormat> menu(const std::vector<std::string>& names) {
  std::vector<BlockFormat> formats;
  for (const std::string& name : names) formats.push_back(formats::parse_block_format(name));
  return formats;
}

plan::Lock parse_lock(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(fmt::format("--lock {}", text), "PATTERN=FORMAT", "write e.g. --lock 'head=fp16'");
  return {text.substr(0, equals), plan::uniform_precision(text.substr(equals + 1)), "--lock " + text};
}

plan::ModelFacts facts_of(const plan::Sensitivity& sensitivity) {
  plan::ModelFacts facts{sensitivity.model, {}};
  for (const plan::LayerSensitivity& layer : sensitivity.layers)
    facts.layers.push_back({layer.name, plan::name(layer.kind), layer.kind, layer.weights});
  return facts;
}

std::string layers_table(const PrecisionPlan& plan, const plan::Sensitivity& sensitivity) {
  observe::TextTable table({{"layer"}, {"weights", true}, {"weight"}, {"input"}, {"why"}});
  for (const plan::LayerSensitivity& layer : sensitivity.layers) {
    const LayerPrecision p = plan.at(layer.name, layer.kind);
    table.add({layer.name, fmt::format("{}", layer.weights), formats::to_string(p.weight), formats::to_string(p.input),
               p.reason});
  }
  return table.text();
}

std::string amounts_text(const std::vector<plan::Amount>& amounts) {
  std::vector<std::string> parts;
  for (const plan::Amount& a : amounts)
    parts.push_back(std::isfinite(a.limit) ? fmt::format("{} {:.6g} of {:.6g}", a.kind, a.value, a.limit)
                                           : fmt::format("{} {:.6g}", a.kind, a.value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string candidates_table(const plan::Allocation& a) {
  observe::TextTable table({{"candidate"}, {"predicted loss, nats", true}, {"spends"}});
  for (const plan::Candidate& c : a.candidates)
    table.add({c.name, fmt::format("{:.6g}", c.loss), amounts_text(c.amounts)});
  return table.text();
}

void write_plan(const AllocateConfig& config, const PrecisionPlan& plan, const plan::Sensitivity& sensitivity) {
  if (config.out.empty()) return;
  const plan::ModelFacts facts = facts_of(sensitivity);
  base::atomic_write(config.out, plan.to_json(&facts));
}

int by_threshold(const AllocateConfig& config, const plan::Sensitivity& sensitivity) {
  plan::ThresholdOptions options;
  options.measure = config.measure;
  options.relative = !config.absolute;
  options.low = config.low;
  options.high = config.high;
  const PrecisionPlan plan = plan::allocate_precision(sensitivity, config.threshold, options);
  write_plan(config, plan, sensitivity);
  if (config.json) {
    const plan::ModelFacts facts = facts_of(sensitivity);
    fmt::print("{}", plan.to_json(&facts));
  } else {
    fmt::print("{}", layers_table(plan, sensitivity));
  }
  return 0;
}

int by_budget(const AllocateConfig& config, const plan::Sensitivity& sensitivity) {
  plan::AllocationOptions options;
  options.standard_errors = config.standard_errors;
  options.weight = menu(config.weights);
  options.input = menu(config.inputs);
  for (const std::string& lock : config.locks) options.locks.push_back(parse_lock(lock));
  if (config.forbid_above >= 0) options.forbid_above = config.forbid_above;
  if (config.training) options.training = plan::AdmissionThresholds{};
  if (!config.times.empty()) options.times = plan::times_from_json(base::read_file(config.times), config.times);
  options.minimise = config.minimise;
  if (!config.front.empty() || !config.plot.empty()) options.front_points = config.front_points;
  const bool html = config.plot.ends_with(".html");
  if (!config.plot.empty() && !html && !config.plot.ends_with(".svg"))
    throw Error(fmt::format("--plot {}", config.plot), "a name that ends in .svg or .html", "choose one of the two");
  const plan::Allocation a = plan::allocate(sensitivity, plan::parse_budget(config.budget), options);

  write_plan(config, a.plan, sensitivity);
  if (!config.front.empty()) base::atomic_write(config.front, plan::to_json(a));
  if (!config.plot.empty()) base::atomic_write(config.plot, html ? observe::front_page(a) : observe::front_picture(a));
  if (config.json) {
    fmt::print("{}", plan::to_json(a));
    return 0;
  }
  fmt::print("{}\n{}\n", layers_table(a.plan, sensitivity), candidates_table(a));
  fmt::print("spends {}\n", amounts_text(a.amounts));
  fmt::print(
      "predicted change of the loss {:.6g} nats (modelled, {} standard errors added); within the budget none is below "
      "{:.6g}\n",
      a.loss, config.standard_errors, a.bound);
  fmt::print("{}\n", a.method);
  if (!a.front.empty()) fmt::print("front: {} of {} points over {}\n", a.front.size(), a.front_found, a.front_kind);
  fmt::print("Predictions choose; measurements decide: try the candidates on fresh data before one is taken.\n");
  return 0;
}

int allocate(const AllocateConfig& config) {
  if (config.budget.empty() == (config.threshold < 0))
    throw Error(
        config.budget.empty() ? "an allocation without --budget or --threshold" : "--budget together with --threshold",
        "one of the two", "say what the plan may spend, e.g. --budget bits=4.0");
  const plan::Sensitivity sensitivity = plan::load_sensitivity(config.file);
  return config.budget.empty() ? by_threshold(config, sensitivity) : by_budget(config, sensitivity);
}

}  // namespace

void add_plan_allocate(CLI::App& plan, Action& action) {
  CLI::App* command = plan.add_subcommand("allocate", "The plan of least predicted loss within a budget");
  const auto config = std::make_shared<AllocateConfig>();
  command->add_option("SENSITIVITY", config->file, "Record of hpqf profile: schema hpqf.sensitivity")->required();
  const auto option = [&](const char* name, auto& value, const char* help, const char* group) {
    return command->add_option(name, value, help)->group(group);
  };
  constexpr const char *what = "What to choose", *formats = "What to choose from", *results = "Results",
                       *simple = "By a threshold instead of a budget";
  option("--budget", config->budget,
         "bits=4.0 (a weight), bytes=60k, bops=2.5G, seconds=0.01, loss=0.02; several with commas", what);
  option("--minimise", config->minimise, "With a budget of loss alone: bits, bytes, seconds or bops; default bytes",
         what);
  option("--standard-errors", config->standard_errors,
         "Added to each score, against scores that are low by chance; default 1", what);
  option("--forbid-above", config->forbid_above, "No choice whose score exceeds this, nats", what);
  command->add_flag("--training", config->training, "Only formats whose training scores admit them")->group(what);
  option("--times", config->times, "Measured times of layers and conversions: schema hpqf.times", what);
  option("--weights", config->weights, "Formats for weights; default: those with scores", formats)
      ->delimiter(',')
      ->allow_extra_args(false);
  option("--inputs", config->inputs,
         "Formats for inputs; default: fp32, or those with scores when the budget counts inputs", formats)
      ->delimiter(',')
      ->allow_extra_args(false);
  option("--lock", config->locks, "PATTERN=FORMAT: layers that are not asked; may be given several times", formats)
      ->allow_extra_args(false);
  option("--threshold", config->threshold,
         "Layers above it take --high, the others --low; a share of the most sensitive layer", simple);
  option("--low", config->low, "Default int4", simple);
  option("--high", config->high, "Default fp16", simple);
  option("--measure", config->measure, "score, eigenvalue, trace or omega; default score", simple);
  command->add_flag("--absolute", config->absolute, "The threshold is in the unit of the measure")->group(simple);
  option("--out", config->out, "Plan file to write", results);
  option("--front", config->front, "Write the allocation with its candidates and Pareto front as JSON", results);
  option("--plot", config->plot, "Picture of the front, .svg or .html", results);
  option("--front-points", config->front_points, "At most; default 64", results);
  command->add_flag("--json", config->json, "Print the allocation as JSON")->group(results);
  command->footer(
      "Examples:\n"
      "  hpqf plan allocate sensitivity.json --budget bits=4.0 --out plan.json\n"
      "  hpqf plan allocate sensitivity.json --budget bytes=60k --lock 'fc=fp16' --front front.json --plot front.svg\n"
      "  hpqf plan allocate sensitivity.json --threshold 0.1 --low int4 --high fp16 --out plan.json");
  command->callback([&action, config] { action = [config] { return allocate(*config); }; });
}

}  // namespace hpqf::app
