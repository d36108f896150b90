// What the cost models are given, from names on the command line.
#pragma once
#include <string>
#include <vector>

#include "apps/hpqf/cost_config.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/cost/estimate.h"
#include "hpqf/cost/price.h"
#include "hpqf/cost/workload.h"
#include "hpqf/plan/plan.h"

namespace hpqf::app {

// A reference model, or the work that a run folder's audit shows. Error with the names.
cost::Workload cost_workload(const CostConfig& config);

// Samples of the whole training. Error unless exactly one of --samples, --epochs, --tokens and --steps is given.
double training_samples(const CostConfig& config, const cost::Workload& work);

struct NamedPlan {
  std::string name;
  PrecisionPlan plan;
};
// The rows: --precision, then --plan. Error for a plan that does not fit the model.
std::vector<NamedPlan> cost_plans(const CostConfig& config, const cost::Workload& work);

// `formats` are measured when the device is "this".
std::vector<cost::DeviceRates> cost_devices(const CostConfig& config, const std::vector<std::string>& formats);
// This machine: products and a copy, timed now or found in the file of rates. Its power and links are unknown.
cost::DeviceRates this_device(const std::vector<std::string>& formats);

// --price, or the table's offers. `device` "" or "this" without --price: Error.
cost::Offer cost_offer(const CostConfig& config, const std::string& device);
// Where it comes from, what is left out, what is old: one sentence each. `today` from the clock.
std::vector<std::string> offer_notes(const cost::Offer& offer);

cost::Conversion conversion(const CostConfig& config);
cost::EnergyOptions energy_options(const CostConfig& config);

std::string money_text(double amount, const std::string& currency);  // "1.23 k USD"
std::string hours_text(double hours);                                // "12.3 h", "45.6 k h"

}  // namespace hpqf::app
