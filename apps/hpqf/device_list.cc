#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "apps/hpqf/device_json.h"
#include "apps/hpqf/device_views.h"
#include "hpqf/base/text.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

std::vector<const device::DeviceFacts*> of_vendor(const device::Database& database, const std::string& vendor) {
  std::vector<const device::DeviceFacts*> out;
  std::set<std::string> vendors;
  for (const device::DeviceFacts& device : database.devices()) {
    vendors.insert(base::lower(device.vendor()));
    if (vendor.empty() || base::lower(device.vendor()) == base::lower(vendor)) out.push_back(&device);
  }
  if (!out.empty() || vendor.empty()) return out;
  throw Error(fmt::format("--vendor {}", vendor), fmt::format("{}", fmt::join(vendors, ", ")),
              "give the name of a vendor in the database");
}

std::string cell(const device::DeviceFacts& device, std::string_view key) {
  const device::Fact* fact = device.find(key);
  return fact ? fact->value.shown() : "unknown";
}

// Where the maker of the system chooses, the largest configuration.
std::string memory(const device::DeviceFacts& device) {
  const auto most = device.number("memory.max_gb");
  return device.find("memory.capacity_gb") || !most ? cell(device, "memory.capacity_gb") : fmt::format("to {}", *most);
}

}  // namespace

int list_devices(const device::Database& database, const ListOptions& options) {
  const auto devices = of_vendor(database, options.vendor);
  if (options.json) {
    DeviceJson json;
    json["schema"] = "hpqf.devices";
    json["version"] = 1;
    json["fields_defined"] = database.schema().fields().size();
    json["devices"] = DeviceJson::array();
    for (const device::DeviceFacts* device : devices) {
      json["devices"].push_back({{"id", device->id()},
                                 {"name", device->name()},
                                 {"vendor", device->vendor()},
                                 {"kind", device->text("identity.kind").value_or("")},
                                 {"fields_known", device->facts().size()}});
    }
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  observe::TextTable table(
      {{"id"}, {"name"}, {"vendor"}, {"year", true}, {"memory GB", true}, {"bf16 TFLOP/s", true}, {"facts", true}});
  for (const device::DeviceFacts* device : devices) {
    table.add({device->id(), device->name(), device->vendor(), cell(*device, "identity.launch_year"), memory(*device),
               cell(*device, "peak.bf16.dense"), fmt::format("{}", device->facts().size())});
  }
  fmt::print("{}{} devices; {} fields are defined, `facts` counts those known. Memory and peaks are quoted, dense.\n",
             table.text(), devices.size(), database.schema().fields().size());
  return 0;
}

}  // namespace hpqf::app
