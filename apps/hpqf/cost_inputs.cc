#include "apps/hpqf/cost_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "apps/hpqf/cost_run_folder.h"
#include "apps/hpqf/plan_files.h"
#include "hpqf/base/error.h"
#include "hpqf/cost/rates_of_facts.h"
#include "hpqf/cost/reference_models.h"
#include "hpqf/device/database.h"
#include "hpqf/observe/human.h"

namespace hpqf::app {
namespace {

cost::PriceKind price_kind(const CostConfig& c) {
  return c.spot ? cost::PriceKind::spot : c.reserved ? cost::PriceKind::reserved : cost::PriceKind::on_demand;
}

cost::Day today() { return std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()); }

std::vector<std::string> layers_of(const cost::Workload& work) {
  std::vector<std::string> names;
  for (const cost::Op& op : work.ops)
    if (!op.layer.empty()) names.push_back(op.layer);
  return names;
}

// A pattern that matches no layer of the model is a plan for another model.
void check_plan(const PrecisionPlan& plan, const std::string& name, const cost::Workload& work) {
  const std::vector<std::string> layers = layers_of(work);
  for (const plan::Rule& rule : plan.rules()) {
    const bool used = rule.layers == "*" || std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
                        return plan::matches(rule.layers, layer);
                      });
    if (!used)
      throw Error(fmt::format("plan {} on {}: rule \"{}\" matches no layer", name, work.model, rule.layers),
                  fmt::format("patterns of layers as {}, {}, ...", layers.front(), layers.back()),
                  "give the plan of this model");
  }
}

}  // namespace

cost::Workload cost_workload(const CostConfig& c) {
  if (std::filesystem::is_directory(c.model)) return read_cost_run(c.model).workload();
  return cost::reference_workload(c.model, {.seq = c.seq,
                                            .image_size = c.image_size,
                                            .fused_attention = !c.unfused_attention,
                                            .causal_exact = c.causal_exact});
}

double training_samples(const CostConfig& c, const cost::Workload& work) {
  const int given = (c.samples > 0) + (c.epochs > 0) + (c.tokens > 0) + (c.steps > 0);
  if (given != 1)
    throw Error(given == 0 ? "a training of unknown length" : "the length of the training in several ways",
                "one of --samples, --epochs, --tokens, --steps", "say once how much is trained");
  if (c.samples > 0) return c.samples;
  if (c.steps > 0) return c.steps * static_cast<double>(c.batch * c.gpus);
  if (c.tokens > 0) {
    if (work.tokens == 0)
      throw Error(fmt::format("--tokens of {}", work.model), "a model of text", "give --samples or --epochs");
    return c.tokens / work.tokens;
  }
  const double dataset = c.dataset > 0 ? c.dataset : work.dataset.value;
  if (dataset == 0)
    throw Error(fmt::format("--epochs of {}, which has no usual data set", work.model), "the samples of an epoch",
                "give --dataset-size, or --samples instead");
  return c.epochs * dataset;
}

std::vector<NamedPlan> cost_plans(const CostConfig& c, const cost::Workload& work) {
  std::vector<std::string> names = c.precisions;
  if (names.empty() && c.plans.empty()) names = {"fp32", "bf16"};
  const std::string baseline = !c.against.empty() ? c.against : names.empty() ? "fp32" : names.front();
  names.erase(std::remove(names.begin(), names.end(), baseline), names.end());
  names.insert(names.begin(), baseline);
  std::vector<NamedPlan> plans;
  for (const std::string& name : names) plans.push_back({name, PrecisionPlan::uniform(name)});
  for (const std::string& path : c.plans) {
    plans.push_back({path, read_plan(path).plan});
    check_plan(plans.back().plan, path, work);
  }
  return plans;
}

std::vector<cost::DeviceRates> cost_devices(const CostConfig& c, const std::vector<std::string>& formats) {
  if (c.devices.empty())
    throw Error("a cost on no device", "--device with names or ids of the device database, or this",
                "name one, e.g. --device nvidia-h100-sxm");
  std::optional<device::Database> database;
  std::optional<device::AchievableFactors> factors;
  std::vector<cost::DeviceRates> rates;
  for (const std::string& name : c.devices) {
    if (name == "this") {
      rates.push_back(this_device(formats));
    } else {
      if (!database) {
        database = device::Database::load(c.database.empty() ? device::shipped_database() : c.database);
        factors.emplace(database->devices());
      }
      rates.push_back(cost::rates_of(database->device(name), *factors, static_cast<int>(c.gpus)));
    }
    if (c.link_gbs > 0) rates.back().link = {c.link_gbs * 1e9, cost::Basis::given, "--link"};
  }
  return rates;
}

cost::Offer cost_offer(const CostConfig& c, const std::string& device) {
  if (c.price > 0) return cost::given_price(c.price, c.currency);
  cost::PriceTable table = cost::PriceTable::published();
  if (!c.prices.empty()) table = table.overridden_by(cost::PriceTable::load(c.prices));
  return cost::offer(table, device, price_kind(c));
}

std::vector<std::string> offer_notes(const cost::Offer& offer) {
  std::vector<std::string> notes;
  if (offer.basis == cost::Basis::given) {
    notes.push_back(fmt::format("given: {} {} for a device and hour", offer.amount.mid, offer.currency));
    return notes;
  }
  const auto listed = [](const cost::Price& p) {
    return fmt::format("quoted: {} {} a {}-hour at {}, {}{} ({})", p.amount, p.currency, p.device, p.provider,
                       cost::name(p.kind), p.date ? ", " + cost::to_string(*p.date) : "", p.source);
  };
  for (const cost::Price& p : offer.used) notes.push_back(listed(p));
  for (const cost::Price& p : offer.other_currencies)
    notes.push_back(listed(p) + "; left out: nothing here converts currencies");
  size_t undated = 0;
  for (const cost::Price& p : offer.used) {
    undated += !p.date;
    if (const std::string warning = cost::age_warning(p, today()); p.date && !warning.empty())
      notes.push_back("warning: " + warning);
  }
  if (undated > 0)
    notes.push_back(fmt::format("warning: {} of these prices carr{} no date: check them, or give your own with --price",
                                undated, undated == 1 ? "ies" : "y"));
  return notes;
}

cost::Conversion conversion(const CostConfig& c) {
  return {c.conversion_hours, c.wage, c.profiling_hours, c.validation_hours, c.rerun_risk};
}

cost::EnergyOptions energy_options(const CostConfig& c) { return {c.utilisation, c.host_factor, c.pue, c.co2}; }

std::string money_text(double amount, const std::string& currency) {
  const double size = std::abs(amount);
  const std::string number = size >= 1e6              ? fmt::format("{:.2f} M", amount / 1e6)
                             : size >= 1e4            ? fmt::format("{:.1f} k", amount / 1e3)
                             : size >= 1 || size == 0 ? fmt::format("{:.2f}", amount)
                                                      : fmt::format("{:.3g}", amount);
  return currency.empty() ? number : number + " " + currency;
}

std::string hours_text(double hours) {
  return hours >= 1e4 ? fmt::format("{:.1f} k h", hours / 1e3) : fmt::format("{:.3g} h", hours);
}

}  // namespace hpqf::app
