#include <fmt/format.h>

#include "apps/hpqf/device_json.h"
#include "apps/hpqf/device_views.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using device::Candidate;

DeviceJson to_json(const Candidate& candidate) {
  DeviceJson json = {{"id", candidate.device->id()}, {"name", candidate.device->name()}};
  json["memory_gb"] = candidate.memory_gb ? DeviceJson(*candidate.memory_gb) : DeviceJson();
  json["price_usd"] = candidate.price ? DeviceJson(candidate.price->usd) : DeviceJson();
  if (candidate.price) json["price_basis"] = candidate.price->basis;
  json["ranked_by"] = candidate.value ? DeviceJson(*candidate.value) : DeviceJson();
  json["resolution"] = hpqf::app::to_json(candidate.resolution);
  if (!candidate.refused.empty()) json["refused"] = candidate.refused;
  return json;
}

std::string number(std::optional<double> x) { return x ? fmt::format("{:.4g}", *x) : "unknown"; }

void print(const device::Selection& selection, const device::Request& request) {
  const bool hourly = request.price == device::PriceKind::hour;
  const bool ratio = request.sort == device::SortBy::rate_per_dollar || request.sort == device::SortBy::rate_per_watt;
  std::vector<observe::TextTable::Column> columns{{"#", true},
                                                  {"id"},
                                                  {"TFLOP/s", true},
                                                  {"rate is"},
                                                  {"gain", true},
                                                  {"memory GB", true},
                                                  {hourly ? "USD/h" : "USD", true}};
  if (ratio) columns.push_back({name(request.sort), true});
  columns.push_back({"rate from"});
  observe::TextTable table(columns);
  observe::Footnotes notes(64);
  for (size_t i = 0; i < selection.ranked.size(); ++i) {
    const Candidate& c = selection.ranked[i];
    const device::Resolution& r = c.resolution;
    std::vector<std::string> cells{fmt::format("{}", i + 1),
                                   c.device->id(),
                                   r.rate ? fmt::format("{:.4g}", r.rate->tera) : "unknown",
                                   r.rate ? name(r.rate->source) : "",
                                   r.gain ? fmt::format("{:.2f}x {}", *r.gain, formats::name(r.baseline)) : "",
                                   number(c.memory_gb),
                                   c.price ? fmt::format("{:.6g}", c.price->usd) : "unknown"};
    if (ratio) cells.push_back(number(c.value));
    cells.push_back(r.rate ? notes.cell(r.rate->basis) : "");
    table.add(std::move(cells));
  }
  fmt::print("{} by {}, best first{}\n", formats::name(request.format), name(request.sort),
             formats::info(request.format).is_integer ? " (TOP/s)" : "");
  if (selection.ranked.empty()) {
    fmt::print("no device is left\n");
  } else {
    fmt::print("{}{}", table.text(), notes.text());
    fmt::print("Rates of large matrix products, of one device. Prices are quoted{}; memory is quoted.\n",
               hourly ? ", the lowest recorded per hour" : " list prices");
  }
  if (selection.refused.empty()) return;
  observe::TextTable refused({{"left out"}, {"because"}});
  for (const Candidate& c : selection.refused) refused.add({c.device->id(), c.refused});
  fmt::print("\n{}", refused.text());
}

}  // namespace

int choose_device(const device::Database& database, const device::Request& request, bool json) {
  const device::AchievableFactors factors(database.devices());
  const device::Selection selection = device::select(database.devices(), factors, request);
  if (!json) {
    print(selection, request);
    return 0;
  }
  DeviceJson out;
  out["schema"] = "hpqf.device_choice";
  out["version"] = 1;
  out["format"] = formats::name(request.format);
  out["sort"] = name(request.sort);
  out["ranked"] = DeviceJson::array();
  out["refused"] = DeviceJson::array();
  for (const Candidate& candidate : selection.ranked) out["ranked"].push_back(to_json(candidate));
  for (const Candidate& candidate : selection.refused) out["refused"].push_back(to_json(candidate));
  fmt::print("{}\n", out.dump(2));
  return 0;
}

}  // namespace hpqf::app
