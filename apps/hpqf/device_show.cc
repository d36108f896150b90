#include <fmt/format.h>

#include "apps/hpqf/device_json.h"
#include "apps/hpqf/device_views.h"
#include "hpqf/device/share.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using device::DeviceFacts;
using device::Fact;
using device::Field;
using device::FieldGroup;

DeviceFacts asked_for(const device::Database& database, const ShowOptions& options) {
  DeviceFacts device = database.device(options.id);
  if (!options.partition.empty()) device = device::partition(device, options.partition);
  if (options.power_cap) device = device::power_capped(device, *options.power_cap);
  return device;
}

std::string cited(const device::Source& source) {
  return fmt::format("{}{}{}{}{}", source.title, source.date.empty() ? "" : ", ", source.date,
                     source.url.empty() ? "" : ", ", source.url);
}

void print_group(const FieldGroup& group, const device::Database& database, const DeviceFacts& device, bool all,
                 observe::Footnotes& notes) {
  observe::TextTable table({{"field"}, {"value"}, {"unit"}, {"trust"}, {"source"}});
  size_t rows = 0, unknown = 0;
  for (const Field& field : database.schema().fields()) {
    if (field.group != group.name) continue;
    if (const Fact* fact = device.find(field.key)) {
      std::string source = notes.cell(cited(*fact->source));
      if (!fact->note.empty()) source += " " + fact->note;
      table.add({field.key, fact->value.shown(), field.unit,
                 fmt::format("{}{}", fact->user ? "user, " : "", name(fact->source->trust)), source});
    } else if (++unknown; all) {
      table.add({field.key, "unknown", field.unit, "", ""});
    } else {
      continue;
    }
    ++rows;
  }
  if (rows == 0) return;
  fmt::print("{}\n{}", group.title, table.text());
  if (unknown) fmt::print("{} unknown: {}\n", unknown, group.unknown);
  fmt::print("\n");
}

void print_formats(const std::vector<device::Resolution>& resolutions, observe::Footnotes& notes) {
  observe::TextTable table({{"format"}, {"runs"}, {"TFLOP/s", true}, {"rate is"}, {"why"}});
  for (const device::Resolution& r : resolutions) {
    std::string rate = "unknown", basis;
    if (r.rate) {
      rate = fmt::format("{:.4g}", r.rate->tera);
      basis = fmt::format("{} {}", name(r.rate->source), notes.cell(r.rate->basis));
    }
    table.add({formats::name(r.format), name(r.kind), rate, basis, r.reason});
  }
  fmt::print(
      "What a large matrix product in each format would do (TOP/s for integers; emulated runs at the rate of "
      "fp32)\n{}\n",
      table.text());
}

DeviceJson json_of(const device::Database& database, const DeviceFacts& device,
                   const std::vector<device::Resolution>& resolutions, const ShowOptions& options) {
  DeviceJson json;
  json["schema"] = "hpqf.device";
  json["version"] = 1;
  json["id"] = device.id();
  json["name"] = device.name();
  json["fields_defined"] = database.schema().fields().size();
  json["fields_known"] = device.facts().size();
  json["facts"] = DeviceJson::object();
  if (options.all) json["unknown"] = DeviceJson::object();
  for (const Field& field : database.schema().fields()) {
    if (!options.group.empty() && field.group != options.group) continue;
    if (const Fact* fact = device.find(field.key)) {
      json["facts"][field.key] = to_json(*fact, &field);
    } else if (options.all) {
      json["unknown"][field.key] = database.why_unknown(field.key);
    }
  }
  json["formats"] = DeviceJson::array();
  for (const device::Resolution& r : resolutions) json["formats"].push_back(to_json(r));
  return json;
}

}  // namespace

int show_device(const device::Database& database, const ShowOptions& options) {
  if (!options.group.empty()) database.schema().group(options.group);
  const DeviceFacts device = asked_for(database, options);
  std::vector<device::Resolution> resolutions;
  if (options.json || options.group.empty()) {
    const device::AchievableFactors factors(database.devices());
    for (const auto& info : formats::all_formats())
      resolutions.push_back(device::resolve(info.format, device, factors));
  }
  if (options.json) {
    fmt::print("{}\n", json_of(database, device, resolutions, options).dump(2));
    return 0;
  }
  fmt::print("{} ({}): {} of {} fields known\n\n", device.name(), device.id(), device.facts().size(),
             database.schema().fields().size());
  observe::Footnotes notes(0);  // sources and bases of rates stand below the tables, each once
  for (const FieldGroup& group : database.schema().groups()) {
    if (options.group.empty() || options.group == group.name) print_group(group, database, device, options.all, notes);
  }
  if (options.group.empty()) print_formats(resolutions, notes);
  fmt::print("Sources (trust: sheet of the maker, measured by somebody, several agree, single, derived)\n");
  fmt::print("{}", notes.text());
  return 0;
}

}  // namespace hpqf::app
