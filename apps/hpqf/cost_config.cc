#include "apps/hpqf/cost_config.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/hpqf/bench_options.h"
#include "hpqf/base/error.h"

namespace hpqf::app {
namespace {

void add_subject(CLI::App& command, CostConfig& c) {
  const char* group = "What is looked at (one of these)";
  command
      .add_option("--model", c.model,
                  "resnet50, bert-base, gpt2, ..., gpt:layers=L,hidden=H,heads=A,vocab=V,seq=T, or a run folder")
      ->group(group);
  command.add_option("--run", c.run, "A run folder: what it has cost so far")->group(group);
  command.add_option("--example", c.example, "gpt-100b: a published claim, worked through")->group(group);
}

void add_training(CLI::App& command, CostConfig& c) {
  const char* group = "The training";
  command.add_option("--precision", c.precisions, "fp32, tf32, bf16, fp8, int8, ...; default fp32,bf16")
      ->delimiter(',')
      ->group(group);
  command.add_option("--plan", c.plans, "Plan files or run folders: one more row each")->delimiter(',')->group(group);
  command.add_option("--device", c.devices, "Names or ids of the device database, or this (measured here)")
      ->delimiter(',')
      ->group(group);
  command.add_option("--gpus", c.gpus, "Devices that train together; default 1")->group(group);
  command.add_option("--batch-size", c.batch, "Samples per device and step; default 32")->group(group);
  command.add_option("--samples", c.samples, "How much is trained: samples")->group(group);
  command.add_option("--epochs", c.epochs, "... or epochs of the usual data set, or of --dataset-size")->group(group);
  command.add_option("--tokens", c.tokens, "... or tokens (text models)")->group(group);
  command.add_option("--steps", c.steps, "... or steps")->group(group);
  command.add_option("--dataset-size", c.dataset, "Samples in an epoch")->group(group);
  command.add_option("--optimizer", c.optimizer, "adamw (default), adam, momentum, sgd: states kept for a parameter")
      ->group(group);
  command.add_option("--seq", c.seq, "Tokens in a sample; default what the model is known for")->group(group);
  command.add_option("--image-size", c.image_size, "Pixels on a side; default what the model is known for")
      ->group(group);
  command.add_flag("--unfused-attention", c.unfused_attention, "Attention keeps its probabilities in memory")
      ->group(group);
  command.add_flag("--causal-exact", c.causal_exact, "Count only the pairs that a causal mask leaves")->group(group);
  command.add_option("--overlap", c.overlap, "Share of the backward pass that hides communication, 0 to 1; default 0")
      ->group(group);
  command.add_option("--link", c.link_gbs, "GB/s between devices, one way; default the device's own link")
      ->group(group);
  command
      .add_option(
          "--left-out", c.left_out,
          "What a roofline leaves out, as a share of its time in 16 bits; default 0.7, and 0 to 1 in the ranges")
      ->group(group);
  command.add_option("--database", c.database, "Folder of device files; default the one that came with hpqf")
      ->group(group);
}

void add_money(CLI::App& command, CostConfig& c) {
  const char* group = "Money and energy";
  command.add_option("--price", c.price, "Of one device for an hour")->group(group);
  command.add_option("--currency", c.currency, "Of --price and --hourly-wage; default USD")->group(group);
  command.add_option("--prices", c.prices, "Your own table, in the format of data/prices.json")->group(group);
  command.add_flag("--spot", c.spot, "Spot prices")->group(group);
  command.add_flag("--reserved", c.reserved, "Reserved prices")->group(group);
  command.add_option("--conversion-hours", c.conversion_hours, "Work to change the precision; default 40")
      ->group(group);
  command.add_option("--hourly-wage", c.wage, "Of that work; default 100")->group(group);
  command.add_option("--profiling-gpu-hours", c.profiling_hours, "To find the plan; default 0")->group(group);
  command.add_option("--validation-gpu-hours", c.validation_hours, "To show that quality holds; default 0")
      ->group(group);
  command.add_option("--rerun-risk", c.rerun_risk, "Probability that a run has to be repeated; default 0")
      ->group(group);
  command.add_option("--utilisation", c.utilisation, "Of the rated power, 0 to 1; default 1")->group(group);
  command.add_option("--host-factor", c.host_factor, "Power of a node over that of its devices; default 1.26")
      ->group(group);
  command.add_option("--pue", c.pue, "Of the building; default 1.2")->group(group);
  command.add_option("--co2", c.co2, "Grams a kWh of your grid; without it no CO2 is given")->group(group);
}

}  // namespace

void add_options(CLI::App& command, CostConfig& c) {
  add_subject(command, c);
  add_training(command, c);
  add_money(command, c);
  command
      .add_option("--against", c.against,
                  "With --model the precision to compare with, default the first; with --run another run")
      ->group("Comparison");
  command.add_option("--target", c.target, "With --run: a loss; steps and money until it is reached")
      ->group("Comparison");
  command.add_option("--json", c.json, "Everything, into this file; - for stdout")->group("Output");
}

void check(const CostConfig& c) {
  const int subjects = !c.model.empty() + !c.run.empty() + !c.example.empty();
  if (subjects != 1)
    throw Error(subjects == 0 ? "a cost of nothing" : "--model, --run and --example together",
                "exactly one of the three", "hpqf cost --help has examples");
  if (c.gpus < 1 || c.gpus > 1'000'000) refuse("gpus", std::to_string(c.gpus), "1 to 1000000");
  if (c.batch < 1 || c.batch > 100'000'000) refuse("batch-size", std::to_string(c.batch), "1 to 100000000");
  if (c.spot && c.reserved) throw Error("--spot and --reserved", "one of the two", "leave out one of them");
  if (c.price != 0 && !c.prices.empty()) throw Error("--price and --prices", "one of the two", "leave out one of them");
  if (c.price != 0 && (c.spot || c.reserved))
    throw Error("--price with --spot or --reserved", "a price, or a kind of price", "leave out one of them");
  struct {
    const char* name;
    double value, most;
  } const numbers[] = {{"samples", c.samples, 1e18},      {"epochs", c.epochs, 1e9},         {"tokens", c.tokens, 1e18},
                       {"steps", c.steps, 1e15},          {"dataset-size", c.dataset, 1e15}, {"seq", c.seq, 1e7},
                       {"image-size", c.image_size, 1e5}, {"link", c.link_gbs, 1e6},         {"price", c.price, 1e6}};
  for (const auto& n : numbers)
    if (!(n.value >= 0 && n.value <= n.most))
      refuse(n.name, fmt::format("{}", n.value), fmt::format("0 to {:g}", n.most));
}

}  // namespace hpqf::app
