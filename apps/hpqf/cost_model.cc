#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "apps/hpqf/cost_config.h"
#include "apps/hpqf/cost_inputs.h"
#include "apps/hpqf/cost_report.h"
#include "hpqf/cost/estimate.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  cost::Estimate estimate;
  std::optional<cost::Change> change;  // none for the baseline itself
};

struct Block {  // one device
  cost::DeviceRates device;
  std::optional<cost::Offer> offer;
  std::vector<Row> rows;
};

// "this" has no published price; without --price its money stays open.
std::optional<cost::Offer> offer_for(const CostConfig& c, const cost::DeviceRates& device) {
  if (device.id == "this" && c.price == 0) return std::nullopt;
  return cost_offer(c, device.id);
}

std::vector<std::string> formats_of(const std::vector<NamedPlan>& plans, const cost::Workload& work) {
  std::set<std::string> names;
  for (const NamedPlan& p : plans)
    for (const cost::Op& op : work.ops) {
      const LayerPrecision precision = p.plan.at(op.layer, op.kind);
      for (const BlockFormat& f : {precision.weight, precision.input, precision.dgrad, precision.wgrad})
        names.insert(formats::name(f.format));
    }
  return {names.begin(), names.end()};
}

std::vector<Block> blocks_of(const CostConfig& c, const cost::Workload& work, const cost::Training& training) {
  const std::vector<NamedPlan> plans = cost_plans(c, work);
  std::vector<Block> blocks;
  for (cost::DeviceRates& device : cost_devices(c, formats_of(plans, work))) {
    Block block{std::move(device), {}, {}};
    block.offer = offer_for(c, block.device);
    const cost::Offer* offer = block.offer ? &*block.offer : nullptr;
    for (const NamedPlan& p : plans) {
      Row row{cost::estimate(work, p.plan, p.name, block.device, offer, training), {}};
      if (!block.rows.empty())
        row.change = cost::change(block.rows.front().estimate, row.estimate, offer, conversion(c));
      block.rows.push_back(std::move(row));
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string money_cell(const cost::Estimate& e) {
  if (e.currency.empty()) return "";
  const std::string mid = money_text(e.money.mid, e.currency);
  if (e.money.low == e.money.high) return mid;
  return fmt::format("{} ({} to {})", mid, money_text(e.money.low, ""), money_text(e.money.high, ""));
}

std::string table(const std::vector<Block>& blocks) {
  observe::TextTable table({{"device"},
                            {"precision"},
                            {"step", true},
                            {"samples/s", true},
                            {"time", true},
                            {"device-hours", true},
                            {"energy", true},
                            {"memory", true},
                            {"cost", true},
                            {"speed", true},
                            {"saved", true},
                            {"break-even"}});
  for (const Block& block : blocks) {
    for (const Row& row : block.rows) {
      const cost::Estimate& e = row.estimate;
      std::string ratio = "1", saved, even;
      if (row.change) {
        ratio =
            fmt::format("{:.2f} ({:.2f}-{:.2f})", row.change->ratio.mid, row.change->ratio.low, row.change->ratio.high);
        saved = fmt::format("{:.0f} %", 100 * row.change->saved);
        if (row.change->break_even) even = cost::to_string(*row.change->break_even);
      }
      table.add({e.device, e.precision, observe::human_seconds(e.step.total()),
                 observe::human_count(e.samples_per_second), observe::human_seconds(e.seconds),
                 hours_text(e.device_hours), e.energy ? fmt::format("{:.3g} kWh", e.energy->kwh) : "unknown",
                 observe::human_bytes(e.memory.total()), money_cell(e), ratio, saved, even});
    }
  }
  return table.text();
}

// What a reader must know about single rows.
std::vector<std::string> warnings(const std::vector<Block>& blocks) {
  std::vector<std::string> notes;
  for (const Block& block : blocks) {
    for (const Row& row : block.rows) {
      const cost::Estimate& e = row.estimate;
      if (e.step.emulated_flops > 0)
        notes.push_back(fmt::format(
            "{} on {}: {:.0f} % of the FLOPs are emulated, for the device does not compute in {}: "
            "they run as fp32 and pay for the rounding",
            e.precision, e.device, 100 * e.step.emulated_flops / e.step.flops, fmt::join(e.step.emulated_names, ", ")));
      if (block.device.memory.value > 0 && e.memory.total() > block.device.memory.value)
        notes.push_back(
            fmt::format("{} on {} needs {} and has {}: the model or its states must be sharded over devices, "
                        "whose traffic is not modelled",
                        e.precision, e.device, observe::human_bytes(e.memory.total()),
                        observe::human_bytes(block.device.memory.value)));
    }
    if (!block.offer) notes.push_back(fmt::format("no price of {}: give --price", block.device.id));
    const Row& first = block.rows.front();
    if (first.estimate.precision == "fp32" && block.device.find(Format::tf32))
      notes.push_back(fmt::format("fp32 on {} means tf32 off; where torch may use tf32, compare with --against tf32",
                                  block.device.id));
  }
  return notes;
}

std::vector<cost::Assumption> assumptions(const std::vector<Block>& blocks, const cost::Workload& work,
                                          const cost::Training& training, const CostConfig& c) {
  std::vector<cost::Assumption> list;
  std::set<std::string> said;
  const auto add = [&](const std::vector<cost::Assumption>& more) {
    for (const cost::Assumption& a : more)
      if (said.insert(a.text).second) list.push_back(a);
  };
  add(work.assumptions);
  if (c.epochs > 0 && c.dataset == 0)
    add({{work.dataset.basis, fmt::format("{:.0f} samples an epoch: {}", work.dataset.value, work.dataset.source)}});
  for (const Block& block : blocks) {
    std::vector<Format> used;
    for (const Row& row : block.rows)
      for (const cost::FormatShare& share : row.estimate.step.formats) used.push_back(share.format);
    add(cost::step_assumptions(block.device, training.step, used));
    add(cost::energy_assumptions(block.device.watts, training.energy));
  }
  add({{cost::Basis::assumed,
        fmt::format("changing the precision takes {} h of work at {} {}, {} device-hours of profiling "
                    "and {} of validation; a run is lost with probability {}",
                    c.conversion_hours, c.wage, c.currency, c.profiling_hours, c.validation_hours, c.rerun_risk)},
       {cost::Basis::assumed,
        "rates may be wrong by 10 % where they were measured here, 15 % where others measured them, 25 % where "
        "they come from a sheet; the ranges of speed and break-even follow from that, from what is left out, and from "
        "the range of prices"},
       {cost::Basis::assumed, "both precisions need the same number of steps"}});
  return list;
}

Json row_json(const Row& row) {
  const cost::Estimate& e = row.estimate;
  Json json{{"device", e.device},
            {"precision", e.precision},
            {"basis", "modelled"},
            {"step_seconds", e.step.total()},
            {"step",
             {{"products", e.step.products},
              {"memory_bound_products", e.step.memory_bound},
              {"other_ops", e.step.others},
              {"casts", e.step.casts},
              {"optimizer", e.step.optimizer},
              {"launches", e.step.launches},
              {"communication", e.step.communication},
              {"communication_exposed", e.step.exposed},
              {"left_out", to_json(e.step.left_out)}}},
            {"flops_per_step_and_device", e.step.flops},
            {"emulated_flops", e.step.emulated_flops},
            {"samples_per_second", e.samples_per_second},
            {"seconds", e.seconds},
            {"device_hours", e.device_hours},
            {"memory_bytes",
             {{"parameters", e.memory.parameters},
              {"gradients", e.memory.gradients},
              {"states", e.memory.states},
              {"activations", e.memory.activations}}},
            {"relative_error", e.step.error}};
  for (const cost::FormatShare& share : e.step.formats)
    json["flops_by_arithmetic"][formats::name(share.format)] = share.flops;
  if (e.energy) json["energy_kwh"] = e.energy->kwh;
  if (e.energy && e.energy->co2_kg) json["co2_kg"] = *e.energy->co2_kg;
  if (!e.currency.empty()) {
    json["currency"] = e.currency;
    json["cost"] = to_json(e.money);
  }
  if (!row.change) return json;
  json["ratio"] = to_json(row.change->ratio);
  json["saved_share"] = row.change->saved;
  if (!row.change->break_even) return json;
  json["saved"] = row.change->saved_money;
  const auto hours = [](const std::optional<double>& h) { return h ? Json(*h) : Json("never"); };
  const cost::BreakEven& even = *row.change->break_even;
  json["break_even_device_hours"] = {
      {"best", hours(even.best)}, {"mid", hours(even.mid)}, {"worst", hours(even.worst)}};
  return json;
}

std::string head(const cost::Workload& work, const cost::Training& training, const CostConfig& c) {
  return fmt::format(
      "{}: {} parameters, {} forward and {} in training per {} (modelled)\n{} samples, {} a step on {} device{}\n\n",
      work.model, observe::human_count(work.parameters()), observe::human_flops(work.forward_flops()),
      observe::human_flops(work.training_flops()), work.sample, observe::human_count(training.samples),
      observe::human_count(static_cast<double>(c.batch * c.gpus)), c.gpus, c.gpus == 1 ? "" : "s");
}

Json workload_json(const cost::Workload& work) {
  return {{"model", work.model},
          {"sample", work.sample},
          {"parameters", work.parameters()},
          {"forward_flops", work.forward_flops()},
          {"dgrad_flops", work.dgrad_flops()},
          {"wgrad_flops", work.wgrad_flops()}};
}

}  // namespace

int cost_of_model(const CostConfig& c) {
  const cost::Workload work = cost_workload(c);
  cost::Training training;
  training.samples = training_samples(c, work);
  training.step = {.batch = static_cast<double>(c.batch),
                   .devices = static_cast<int>(c.gpus),
                   .optimizer_states = cost::optimizer_states(c.optimizer),
                   .overlap = c.overlap};
  if (c.left_out) training.step.left_out = {*c.left_out, *c.left_out, *c.left_out};
  training.energy = energy_options(c);
  const std::vector<Block> blocks = blocks_of(c, work, training);

  std::vector<std::string> prices;
  std::set<std::string> said;
  for (const Block& block : blocks)
    if (block.offer)
      for (std::string& note : offer_notes(*block.offer))
        if (said.insert(note).second) prices.push_back(std::move(note));
  const std::vector<std::string> warned = warnings(blocks);
  const std::vector<cost::Assumption> assumed = assumptions(blocks, work, training, c);

  Json json = cost_json("model");
  json["workload"] = workload_json(work);
  json["samples"] = training.samples;
  json["devices"] = c.gpus;
  json["batch_per_device"] = c.batch;
  for (const Block& block : blocks)
    for (const Row& row : block.rows) json["rows"].push_back(row_json(row));
  json["prices"] = prices;
  json["warnings"] = warned;
  json["assumptions"] = to_json(assumed);
  publish(c,
          head(work, training, c) + table(blocks) + note_text("To know:", warned) + note_text("Prices:", prices) +
              assumption_text("Everything above is modelled. It rests on:", assumed),
          json);
  return 0;
}

}  // namespace hpqf::app
