#include "hpqf/cost/example.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/hpqf/cost_config.h"
#include "apps/hpqf/cost_inputs.h"
#include "apps/hpqf/cost_report.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

std::string value_text(const cost::ExampleLine& line) {
  const double size = line.value;
  const std::string number = size >= 1e9    ? fmt::format("{:.1f} x 10^9", size / 1e9)
                             : size >= 10e3 ? fmt::format("{:.1f} k", size / 1e3)
                                            : fmt::format("{:.4g}", size);
  return line.unit.empty() ? number : number + " " + line.unit;
}

}  // namespace

int cost_of_example(const CostConfig& config) {
  if (config.example != "gpt-100b")
    throw Error(fmt::format("--example {}", config.example), "gpt-100b", "take that one");
  CostConfig c = config;
  c.gpus = 1;
  if (c.devices.empty()) c.devices = {"nvidia-a100-sxm-80gb", "nvidia-h100-sxm"};
  const std::vector<cost::DeviceRates> devices = cost_devices(c, {"fp32", "tf32", "bf16", "fp8"});
  const cost::Offer offer = cost_offer(c, devices.front().id);
  if (offer.currency != "USD")
    throw Error(fmt::format("a price in {} against a claim in USD", offer.currency), "a price in USD",
                "give --price in USD: nothing here converts currencies");
  const std::vector<cost::DeviceRates> others(devices.begin() + 1, devices.end());
  const cost::Example example = cost::gpt_100b_example(devices.front(), others, offer, conversion(c));

  observe::TextTable table({{"figure"}, {"value", true}, {"basis"}, {"how"}});
  nlohmann::ordered_json json = cost_json("example");
  for (const cost::ExampleLine& line : example.lines) {
    table.add({line.what, value_text(line), cost::name(line.basis), line.how});
    json["figures"].push_back({{"what", line.what},
                               {"value", line.value},
                               {"unit", line.unit},
                               {"basis", cost::name(line.basis)},
                               {"how", line.how}});
  }
  observe::TextTable changes({{"change"}, {"device"}, {"times as fast", true}, {"reaches the claim"}});
  for (const cost::ExampleTransition& t : example.transitions) {
    changes.add({t.from + " to " + t.to, t.device, fmt::format("{:.2f}", t.ratio), t.reaches ? "yes" : "no"});
    json["transitions"].push_back(
        {{"device", t.device}, {"from", t.from}, {"to", t.to}, {"ratio", t.ratio}, {"reaches", t.reaches}});
  }
  json["verdict"] = example.verdict;
  const std::vector<Format> used{Format::fp32, Format::tf32, Format::bf16, Format::fp8_e4m3};
  std::vector<cost::Assumption> assumed;
  for (const cost::DeviceRates& device : devices)
    for (const cost::Assumption& a : cost::step_assumptions(device, {}, used)) assumed.push_back(a);
  json["prices"] = offer_notes(offer);
  json["assumptions"] = to_json(assumed);
  publish(c,
          fmt::format("The claim: a model of 100 billion parameters, 1.2 M to 480 k USD in 40 % less time; break-even "
                      "beyond 1,000 GPU-hours.\n\n{}\nWhat number formats give (modelled):\n\n{}{}{}{}",
                      table.text(), changes.text(), note_text("In words:", example.verdict),
                      note_text("Prices:", offer_notes(offer)), assumption_text("The model rests on:", assumed)),
          json);
  return 0;
}

}  // namespace hpqf::app
