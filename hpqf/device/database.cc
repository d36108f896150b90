#include "hpqf/device/database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "hpqf/base/file.h"
#include "hpqf/base/text.h"

namespace hpqf::device {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSchemaFile = "fields.json";

// Sorted, so that errors and results do not depend on the order of a folder.
std::vector<fs::path> device_files(const std::string& path) {
  if (fs::is_regular_file(path)) return {path};
  if (!fs::is_directory(path))
    throw Error("devices from " + path, "a device file or a folder of device files", "check the path");
  std::vector<fs::path> files;
  try {
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && entry.path().extension() == ".json" && entry.path().filename() != kSchemaFile)
        files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& e) {
    throw Error("devices from " + path, std::string("a folder that can be read; the file system said: ") + e.what(),
                "check its permissions");
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Reader {
 public:
  explicit Reader(const Schema& schema) : schema_(schema) {}

  // Files of one layer: two of them may not describe the same device.
  void read(const std::string& path, bool of_user) {
    std::map<std::string, fs::path> seen;
    for (const fs::path& file : device_files(path)) {
      const std::string id = file.stem().string();
      const auto [first, added] = seen.emplace(id, file);
      try {
        if (!added)
          throw Error(fmt::format("{}: device \"{}\" a second time", file.string(), id),
                      fmt::format("one file for it; the other is {}", first->second.string()), "remove one of the two");
        const DeviceFacts facts = parse_device(base::read_file(file), file.string(), id, schema_, mistakes);
        DeviceFacts& device = devices.try_emplace(id, id).first->second;
        if (of_user)
          device.lay_over(facts);
        else
          device = facts;
      } catch (const Error& mistake) {
        mistakes.push_back(mistake);
      }
    }
  }

  std::map<std::string, DeviceFacts> devices;
  std::vector<Error> mistakes;

 private:
  const Schema& schema_;
};

// Length of the longest identity.match that stands in `low`; 0 where the device is ruled out.
size_t match_length(const DeviceFacts& device, const std::string& low) {
  auto stands_in = [&](const std::string& part) { return low.find(base::lower(part)) != std::string::npos; };
  const std::vector<std::string> never = device.texts("identity.match_not");
  if (std::any_of(never.begin(), never.end(), stands_in)) return 0;
  size_t longest = 0;
  for (const std::string& part : device.texts("identity.match")) {
    if (stands_in(part)) longest = std::max(longest, part.size());
  }
  return longest;
}

bool is_called(const DeviceFacts& device, const std::string& low) {
  if (base::lower(device.id()) == low || base::lower(device.name()) == low) return true;
  const std::vector<std::string> aliases = device.texts("identity.aliases");
  return std::any_of(aliases.begin(), aliases.end(), [&](const std::string& a) { return base::lower(a) == low; });
}

}  // namespace

Database::Database(Schema schema, std::vector<DeviceFacts> devices)
    : schema_(std::move(schema)), devices_(std::move(devices)) {
  std::sort(devices_.begin(), devices_.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
}

LoadedDatabase Database::load_usable(const std::string& folder, const std::vector<std::string>& overrides) {
  const std::string schema_file = (fs::path(folder) / kSchemaFile).string();
  if (!fs::is_regular_file(schema_file))
    throw Error("the device database in " + folder, "a folder with fields.json and one .json file a device",
                "check the path");
  Schema schema = Schema::parse(base::read_file(schema_file), schema_file);
  Reader reader(schema);
  reader.read(folder, false);
  for (const std::string& path : overrides) reader.read(path, true);
  std::vector<DeviceFacts> devices;
  for (auto& entry : reader.devices) devices.push_back(std::move(entry.second));
  return {Database(std::move(schema), std::move(devices)), std::move(reader.mistakes)};
}

Database Database::load(const std::string& folder, const std::vector<std::string>& overrides) {
  LoadedDatabase loaded = load_usable(folder, overrides);
  if (loaded.mistakes.size() == 1) throw loaded.mistakes.front();
  if (!loaded.mistakes.empty()) {
    std::string all;
    for (const Error& m : loaded.mistakes)
      all += fmt::format("\n  {} [allowed: {}; to do: {}]", m.asked(), m.allowed(), m.todo());
    throw Error(fmt::format("the device database in {}: {} mistakes{}", folder, loaded.mistakes.size(), all),
                "files without mistakes", "correct them; `hpqf device check` lists what is left");
  }
  return std::move(loaded.database);
}

const DeviceFacts* Database::find(std::string_view id) const {
  const auto it = std::lower_bound(devices_.begin(), devices_.end(), id,
                                   [](const DeviceFacts& device, std::string_view to) { return device.id() < to; });
  return it != devices_.end() && it->id() == id ? &*it : nullptr;
}

std::vector<const DeviceFacts*> Database::longest_match(std::string_view name) const {
  const std::string low = base::lower(name);
  std::vector<const DeviceFacts*> best;
  size_t longest = 1;
  for (const DeviceFacts& device : devices_) {
    const size_t length = match_length(device, low);
    if (length < longest) continue;
    if (length > longest) best.clear();
    longest = length;
    best.push_back(&device);
  }
  return best;
}

const DeviceFacts* Database::detected(std::string_view driver_name, std::optional<double> memory_gb) const {
  std::vector<const DeviceFacts*> fitting = longest_match(driver_name);
  if (memory_gb && fitting.size() > 1) {
    auto distance = [&](const DeviceFacts* device) {
      const double its = device->number("identity.match_memory_gb").value_or(0);
      return its > 0 ? std::abs(its - *memory_gb) / its : 1.0;
    };
    std::stable_sort(fitting.begin(), fitting.end(), [&](auto* a, auto* b) { return distance(a) < distance(b); });
    if (distance(fitting[0]) < 0.1 && distance(fitting[0]) < distance(fitting[1])) return fitting.front();
  }
  return fitting.size() == 1 ? fitting.front() : nullptr;
}

const DeviceFacts& Database::device(std::string_view name) const {
  if (const DeviceFacts* device = find(name)) return *device;
  const std::string low = base::lower(name);
  std::vector<const DeviceFacts*> fitting;
  for (const DeviceFacts& device : devices_) {
    if (is_called(device, low)) fitting.push_back(&device);
  }
  if (fitting.empty()) fitting = longest_match(name);
  if (fitting.size() == 1) return *fitting.front();

  std::vector<std::string> ids;
  if (!fitting.empty()) {
    for (const DeviceFacts* device : fitting) ids.push_back(device->id());
    throw Error(fmt::format("device \"{}\", which is the name of {}", name, fitting.size()),
                fmt::format("{}", fmt::join(ids, ", ")), "give one of these ids");
  }
  // Part of an id or a name is what most people type; spelling comes second.
  for (const DeviceFacts& device : devices_) {
    if (low.size() >= 2 && (base::lower(device.id()).find(low) != std::string::npos ||
                            base::lower(device.name()).find(low) != std::string::npos))
      ids.push_back(device.id());
  }
  if (ids.empty()) {
    std::vector<std::string> all;
    for (const DeviceFacts& device : devices_) all.push_back(device.id());
    ids = base::nearest(all, name, 5);
  }
  if (ids.size() > 8) ids.resize(8);
  throw Error(fmt::format("device \"{}\"", name),
              devices_.empty()
                  ? "nothing: the database holds no device"
                  : fmt::format("an id, a market name or what a driver reports; nearest: {}", fmt::join(ids, ", ")),
              "`hpqf device list` shows all; a new device takes a file of its own (docs/devices.md)");
}

std::string Database::why_unknown(std::string_view key) const {
  return schema_.group(schema_.field(key).group).unknown;
}

}  // namespace hpqf::device
