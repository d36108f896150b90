#include <fmt/format.h>

#include <set>

#include "apps/hpqf/device_views.h"
#include "apps/hpqf/failure.h"
#include "hpqf/device/consistency.h"

namespace hpqf::app {
namespace {

void print(const Error& mistake) {
  fmt::print("mistake  {}\n         allowed: {}\n         to do:   {}\n", mistake.asked(), mistake.allowed(),
             mistake.todo());
}

}  // namespace

std::string DeviceFiles::folder() const { return database.empty() ? device::shipped_database() : database; }

device::Database DeviceFiles::load() const { return device::Database::load(folder(), overrides); }

int check_devices(const DeviceFiles& files, const std::vector<std::string>& paths) {
  std::vector<std::string> overrides = files.overrides;
  overrides.insert(overrides.end(), paths.begin(), paths.end());
  const auto [database, mistakes] = device::Database::load_usable(files.folder(), overrides);
  for (const Error& mistake : mistakes) print(mistake);

  // Files given by name are what is asked about: of the database only the devices they touch.
  size_t checked = 0, facts = 0, found = 0;
  for (const device::DeviceFacts& device : database.devices()) {
    bool touched = paths.empty();
    for (const auto& entry : device.facts()) touched = touched || entry.second.user;
    if (!touched) continue;
    ++checked;
    facts += device.facts().size();
    for (const device::Breach& breach : device::breaches(device)) {
      fmt::print("{}: {} [rule {}]\n", breach.device, breach.text, breach.rule);
      ++found;
    }
  }
  fmt::print("{} devices with {} facts checked by {} rules: {} mistakes in files, {} facts that disagree\n", checked,
             facts, device::rules().size(), mistakes.size(), found);
  return mistakes.empty() && found == 0 ? 0 : kFailure;
}

}  // namespace hpqf::app
