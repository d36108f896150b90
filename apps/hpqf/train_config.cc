#include "apps/hpqf/train_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "hpqf/base/error.h"
#include "hpqf/observe/export/exporters.h"
#include "hpqf/observe/run/run_record.h"
#include "models/data/dataset.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

void require(bool good, const char* option, const auto& value, const char* allowed) {
  if (good) return;
  throw Error(fmt::format("--{} {}", option, value), allowed, fmt::format("correct --{}", option));
}

bool at_least(double least, double value) { return std::isfinite(value) && value >= least; }

}  // namespace

void add_options(CLI::App& command, TrainConfig& c) {
  command.add_option("--model", c.model, "resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm")->group("What to train");
  command.add_option("--data", c.data, models::kDatasets)->group("What to train");
  command.add_option("--limit", c.limit, "Use only the first N training samples")->group("What to train");

  command.add_option("--precision", c.precision, "fp32, tf32, bf16, fp16, fp8, int8, ..., or auto; default bf16")
      ->group("Precision");
  command.add_option("--sensitive", c.sensitive, "Layers to keep at fp32: names or patterns, separated by commas")
      ->delimiter(',')
      ->group("Precision");
  command.add_option("--plan", c.plan, "A plan file instead of --precision and --sensitive")->group("Precision");
  command
      .add_option("--loss-scale", c.loss_scale, "A number, dynamic, or off; default: dynamic when the plan needs it")
      ->group("Precision");
  command
      .add_flag("--range-compensation", c.range_compensation,
                "Let fp16, and fp8 without scale, follow the largest values of each layer with a power of two")
      ->group("Precision");
  command
      .add_flag("--strict{formats}", c.strict,
                "Fail when an op would run in another format than planned (formats), or emulated (native)")
      ->group("Precision");

  command.add_option("--optimizer", c.optimizer, "sgd or adamw")->group("Optimisation");
  command.add_option("--lr", c.lr, "Learning rate")->group("Optimisation");
  command.add_option("--momentum", c.momentum, "Of sgd")->group("Optimisation");
  command.add_option("--weight-decay", c.weight_decay)->group("Optimisation");
  command.add_option("--clip", c.clip, "Largest 2-norm of the gradients; 0: no clipping")->group("Optimisation");
  command.add_option("--schedule", c.schedule, "constant or cosine; default constant")->group("Optimisation");
  command.add_option("--warmup", c.warmup, "Steps over which the learning rate rises")->group("Optimisation");
  command.add_option("--batch-size", c.batch_size)->group("Optimisation");
  command.add_option("--accumulate", c.accumulate, "Batches per optimizer step")->group("Optimisation");
  command.add_option("--epochs", c.epochs)->group("Optimisation");
  command.add_option("--steps", c.steps, "Optimizer steps in total")->group("Optimisation");

  command.add_option("--seed", c.seed, "Of the weights, the order of the data and dropout")->group("Run");
  command.add_option("--threads", c.threads, "Threads to compute with")->group("Run");
  command.add_option("--out", c.out, "Run folder; default runs/MODEL-TIME")->group("Run");
  command.add_flag("--resume", c.resume, "Go on from the newest checkpoint in --out, with the settings of that run")
      ->group("Run");
  command.add_option("--checkpoint-every", c.checkpoint_every, "Steps between checkpoints; default: only at the end")
      ->group("Run");
  command
      .add_option("--eval-every", c.eval_every,
                  "Steps between evaluations on the validation data; default: only at the end")
      ->group("Run");
  command
      .add_option(
          "--export", c.exports,
          fmt::format("Also write for other tools, step by step: {}; separated by commas, NAME=PATH for another "
                      "place than OUT/export",
                      fmt::join(observe::exporter_names(), ", ")))
      ->delimiter(',')
      ->group("Run");
  command.add_option("--prometheus", c.prometheus, "Serve /metrics on PORT (of 127.0.0.1) or HOST:PORT")->group("Run");
  command
      .add_option("--monitor-gradients", c.monitor_gradients,
                  "Steps between looks at weights and gradients, written to gradients.jsonl; default: none")
      ->group("Monitoring");
  command
      .add_option("--monitor", c.monitor,
                  "Steps between rows of monitor.jsonl (machine, cost, numerics; docs/monitoring.md); default: none")
      ->group("Monitoring");
  command.add_option("--alerts", c.alerts, "Alert rules for --monitor from a JSON file instead of the defaults")
      ->group("Monitoring");
  command.add_option("--price-per-hour", c.price_per_hour, "USD, for the cost in monitor.jsonl")->group("Monitoring");
  command.add_option("--reference", c.reference, "metrics.jsonl of another run, to compare the loss with")
      ->group("Monitoring");
  command.add_option("--config", c.config, "Settings from a JSON, TOML or INI file; options on the command line win")
      ->group("Run");
  command.add_flag("--quiet", c.quiet, "Print only the result")->group("Run");
}

Settings model_defaults(const std::string& model) {
  struct Row {
    const char* model;
    Settings settings;
  };
  // ResNet-20: He et al. (2015), section 4.2. The others: the usual of their kind, enough for a falling loss.
  static const Row rows[] = {
      {"resnet20",
       {{"data", {"fashion-mnist"}},
        {"optimizer", {"sgd"}},
        {"lr", {"0.1"}},
        {"momentum", {"0.9"}},
        {"weight-decay", {"0.0001"}},
        {"batch-size", {"128"}},
        {"epochs", {"10"}}}},
      {"vit-tiny",
       {{"data", {"fashion-mnist"}},
        {"optimizer", {"adamw"}},
        {"lr", {"0.001"}},
        {"weight-decay", {"0.05"}},
        {"clip", {"1"}},
        {"batch-size", {"128"}},
        {"epochs", {"10"}}}},
      {"bert-mini",
       {{"data", {"verses"}},
        {"optimizer", {"adamw"}},
        {"lr", {"0.0003"}},
        {"weight-decay", {"0.01"}},
        {"clip", {"1"}},
        {"warmup", {"100"}},
        {"batch-size", {"32"}},
        {"epochs", {"3"}}}},
      {"gpt-mini",
       {{"data", {"text"}},
        {"optimizer", {"adamw"}},
        {"lr", {"0.001"}},
        {"weight-decay", {"0.01"}},
        {"clip", {"1"}},
        {"batch-size", {"32"}},
        {"epochs", {"1"}}}},
      {"lstm-lm",
       {{"data", {"text"}},
        {"optimizer", {"adamw"}},
        {"lr", {"0.002"}},
        {"clip", {"1"}},
        {"batch-size", {"32"}},
        {"epochs", {"1"}}}},
  };
  const std::string name = models::find_model(model).name;
  for (const Row& row : rows) {
    if (row.model == name) return row.settings;
  }
  throw std::logic_error("no defaults for " + name);
}

void check(const TrainConfig& c) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  require(c.batch_size >= 1, "batch-size", c.batch_size, "1 or more");
  require(c.accumulate >= 1, "accumulate", c.accumulate, "1 or more");
  require(c.epochs >= 0, "epochs", c.epochs, "1 or more");
  require(c.steps >= 0, "steps", c.steps, "1 or more");
  require(c.epochs > 0 || c.steps > 0, "steps", c.steps, "1 or more, unless --epochs says how long to train");
  require(c.limit >= 0, "limit", c.limit, "1 or more; 0 means all");
  require(c.warmup >= 0, "warmup", c.warmup, "0 or more");
  require(c.checkpoint_every >= 0, "checkpoint-every", c.checkpoint_every, "1 or more; 0 means only at the end");
  require(c.eval_every >= 0, "eval-every", c.eval_every, "1 or more; 0 means only at the end");
  require(c.monitor_gradients >= 0, "monitor-gradients", c.monitor_gradients, "1 or more; 0 means none");
  require(c.monitor >= 0, "monitor", c.monitor, "1 or more; 0 means none");
  require(at_least(0, c.price_per_hour), "price-per-hour", c.price_per_hour, "0 or more; 0 means unknown");
  for (const auto& [option, given] : {std::pair{"--alerts", !c.alerts.empty()},
                                      {"--price-per-hour", c.price_per_hour > 0},
                                      {"--reference", !c.reference.empty()}}) {
    if (given && c.monitor == 0)
      throw Error(fmt::format("{} without --monitor", option), "both", "add --monitor N: steps between rows");
  }
  require(c.threads >= 0 && c.threads <= 64 * cores, "threads", c.threads,
          "1 or more, at most 64 times the cores; 0 means as many as torch chooses");
  require(std::isfinite(c.lr) && c.lr > 0, "lr", c.lr, "a number greater than 0");
  require(at_least(0, c.momentum) && c.momentum < 1, "momentum", c.momentum, "from 0 to less than 1");
  require(at_least(0, c.weight_decay), "weight-decay", c.weight_decay, "0 or more");
  require(at_least(0, c.clip), "clip", c.clip, "0 or more; 0 means no clipping");
  require(c.strict.empty() || c.strict == "formats" || c.strict == "native", "strict", c.strict, "formats or native");
  if (!c.plan.empty() && !c.sensitive.empty()) {
    throw Error("--plan together with --sensitive", "one of the two", "put a rule for these layers into the plan file");
  }
}

std::string to_json(const TrainConfig& c) {
  nlohmann::ordered_json json{{"schema", "hpqf.run"}, {"version", 1}, {"model", c.model}, {"data", c.data}};
  if (c.plan.empty()) {
    json["precision"] = c.precision;
    if (!c.sensitive.empty()) json["sensitive"] = c.sensitive;
  } else {
    json["plan"] = c.plan;
  }
  if (!c.loss_scale.empty()) json["loss-scale"] = c.loss_scale;
  if (c.range_compensation) json["range-compensation"] = true;
  if (!c.strict.empty()) json["strict"] = c.strict;
  json["optimizer"] = c.optimizer;
  json["lr"] = c.lr;
  json["momentum"] = c.momentum;
  json["weight-decay"] = c.weight_decay;
  json["clip"] = c.clip;
  json["schedule"] = c.schedule;
  json["warmup"] = c.warmup;
  json["batch-size"] = c.batch_size;
  json["accumulate"] = c.accumulate;
  if (c.epochs > 0) json["epochs"] = c.epochs;
  if (c.steps > 0) json["steps"] = c.steps;
  json["limit"] = c.limit;
  json["seed"] = c.seed;
  json["threads"] = c.threads;
  json["checkpoint-every"] = c.checkpoint_every;
  if (c.eval_every > 0) json["eval-every"] = c.eval_every;
  if (c.monitor_gradients > 0) json["monitor-gradients"] = c.monitor_gradients;
  if (c.monitor > 0) json["monitor"] = c.monitor;
  if (!c.alerts.empty()) json["alerts"] = c.alerts;
  if (!c.reference.empty()) json["reference"] = c.reference;
  if (c.price_per_hour > 0) json["price-per-hour"] = c.price_per_hour;
  return json.dump(1) + "\n";
}

std::vector<std::pair<std::string, std::string>> settings_text(const TrainConfig& config) {
  return observe::settings_of(to_json(config));
}

}  // namespace hpqf::app
