// The devices HPQF knows: a folder with fields.json and one file a device, and what the user lays over it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/export.h"
#include "hpqf/device/facts.h"
#include "hpqf/device/schema.h"

namespace hpqf::device {

struct LoadedDatabase;

class HPQF_API Database {
 public:
  Database(Schema schema, std::vector<DeviceFacts> devices);

  // `folder` holds fields.json and, at any depth, <id>.json files. `overrides` are device files, or folders of such,
  // in the same format: their facts win and are marked `user`, and a device the database lacks is added.
  // Error listing every mistake in every file.
  static Database load(const std::string& folder, const std::vector<std::string>& overrides = {});
  // The same, but a file or fact with a mistake is left out and the mistake returned beside what could be read.
  // Error only when fields.json or the folder itself cannot be used.
  static LoadedDatabase load_usable(const std::string& folder, const std::vector<std::string>& overrides = {});

  const Schema& schema() const { return schema_; }
  const std::vector<DeviceFacts>& devices() const { return devices_; }  // by id

  const DeviceFacts* find(std::string_view id) const;  // by id alone; nullptr when there is none
  // By id, market name or alias, else by what a driver calls the device. Upper and lower case are alike.
  // Error with the nearest names, or with all that fit equally well.
  const DeviceFacts& device(std::string_view name) const;
  // The device that a driver's name means; nullptr when none fits or several fit equally well. A device fits when one
  // of its identity.match stands in the name and none of its identity.match_not; the longest match wins, and among
  // equals the device whose identity.match_memory_gb is nearest to `memory_gb`, within 10 %.
  const DeviceFacts* detected(std::string_view driver_name, std::optional<double> memory_gb = {}) const;

  std::string why_unknown(std::string_view key) const;  // the reason of the field's group

 private:
  std::vector<const DeviceFacts*> longest_match(std::string_view name) const;

  Schema schema_;
  std::vector<DeviceFacts> devices_;
};

struct LoadedDatabase {
  Database database;
  std::vector<Error> mistakes;
};

// The database that came with this library: beside it in a wheel and in the build tree, in share/hpqf/devices of an
// installed tree. Error naming the places that were tried.
HPQF_API std::string shipped_database();

}  // namespace hpqf::device
