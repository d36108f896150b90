// What `hpqf device` prints: the database, one device, several side by side, a choice, and what is wrong with a file.
// Each returns the exit code.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hpqf/device/database.h"
#include "hpqf/device/select.h"

namespace hpqf::app {

struct DeviceFiles {
  std::string database;                // folder; "" for the one that came with hpqf
  std::vector<std::string> overrides;  // files and folders laid over it

  std::string folder() const;
  device::Database load() const;  // Error listing every mistake
};

struct ListOptions {
  std::string vendor;
  bool json = false;
};
int list_devices(const device::Database& database, const ListOptions& options);

struct ShowOptions {
  std::string id, group, partition;
  std::optional<double> power_cap;  // W
  bool all = false, json = false;
};
int show_device(const device::Database& database, const ShowOptions& options);

struct CompareOptions {
  std::vector<std::string> ids;
  std::vector<std::string> fields;  // globs; empty: every field that is known of one of them
  bool same = false;                // also fields with the same value everywhere
  bool json = false;
};
int compare_devices(const device::Database& database, const CompareOptions& options);

int choose_device(const device::Database& database, const device::Request& request, bool json);

// The database and, when given, device files laid over it: mistakes in files and facts that disagree.
int check_devices(const DeviceFiles& files, const std::vector<std::string>& paths);

}  // namespace hpqf::app
