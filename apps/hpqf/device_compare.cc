#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/hpqf/device_json.h"
#include "apps/hpqf/device_views.h"
#include "hpqf/base/text.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using Devices = std::vector<const device::DeviceFacts*>;

bool is_wanted(const device::Field& field, const std::vector<std::string>& globs) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return base::glob(glob, field.key) || base::glob(glob + ".*", field.key);
         });
}

// Unknown everywhere says nothing; the same everywhere is shown only when asked for.
bool is_shown(const device::Field& field, const Devices& devices, bool same) {
  const device::Fact* first = devices.front()->find(field.key);
  bool known = false, equal = true;
  for (const device::DeviceFacts* device : devices) {
    const device::Fact* fact = device->find(field.key);
    known = known || fact;
    equal = equal && (fact ? first && fact->value == first->value : !first);
  }
  return known && (same || !equal);
}

}  // namespace

int compare_devices(const device::Database& database, const CompareOptions& options) {
  Devices devices;
  for (const std::string& id : options.ids) devices.push_back(&database.device(id));
  for (const std::string& glob : options.fields) {
    const auto& fields = database.schema().fields();
    if (std::none_of(fields.begin(), fields.end(), [&](const auto& field) { return is_wanted(field, {glob}); }))
      throw Error(
          fmt::format("--fields {}", glob),
          fmt::format("names and globs of fields, for example {}", fmt::join(database.schema().nearest(glob), ", ")),
          "`hpqf device show ID --all` lists every field");
  }
  std::vector<const device::Field*> fields;
  for (const device::Field& field : database.schema().fields()) {
    if (is_wanted(field, options.fields) && is_shown(field, devices, options.same || !options.fields.empty()))
      fields.push_back(&field);
  }

  if (options.json) {
    DeviceJson json;
    json["schema"] = "hpqf.device_comparison";
    json["version"] = 1;
    for (const device::DeviceFacts* device : devices) json["devices"].push_back(device->id());
    json["fields"] = DeviceJson::object();
    for (const device::Field* field : fields) {
      for (const device::DeviceFacts* device : devices) {
        const device::Fact* fact = device->find(field->key);
        json["fields"][field->key].push_back(fact ? to_json(*fact, field) : DeviceJson());
      }
    }
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  std::vector<observe::TextTable::Column> columns{{"field"}, {"unit"}};
  for (const device::DeviceFacts* device : devices) columns.push_back({device->id(), true});
  observe::TextTable table(std::move(columns));
  observe::Footnotes notes(32);
  for (const device::Field* field : fields) {
    std::vector<std::string> cells{field->key, field->unit};
    for (const device::DeviceFacts* device : devices) {
      const device::Fact* fact = device->find(field->key);
      cells.push_back(fact ? notes.cell(fact->value.shown()) : "unknown");
    }
    table.add(std::move(cells));
  }
  fmt::print("{}{}{} fields{}; sources with `hpqf device show ID`\n", table.text(), notes.text(), fields.size(),
             options.same || !options.fields.empty() ? "" : " that differ (--same shows the others too)");
  return 0;
}

}  // namespace hpqf::app
