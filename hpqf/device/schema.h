// Which fields a device can have: the file fields.json of the database.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/fact.h"

namespace hpqf::device {

enum class FieldType : uint8_t { number, integer, text, list, flag, object };
HPQF_API const char* name(FieldType type);

struct FieldGroup {
  std::string name, title;
  std::string unknown;  // why a field of this group may be missing, in words for the user
};

struct Field {
  std::string key;    // "peak.bf16.dense"
  std::string group;  // name of a FieldGroup
  FieldType type = FieldType::number;
  std::string unit;  // "" where there is none
  std::string meaning;
};

class HPQF_API Schema {
 public:
  // Error naming `where` and the entry: no JSON, an unknown key, a field twice, a group that is not there.
  static Schema parse(std::string_view text, std::string_view where);

  const std::vector<FieldGroup>& groups() const { return groups_; }
  const std::vector<Field>& fields() const { return fields_; }
  const Field* find(std::string_view key) const;         // nullptr when there is none
  const Field& field(std::string_view key) const;        // Error with the nearest keys
  const FieldGroup& group(std::string_view name) const;  // Error with the names of all groups
  std::vector<std::string> nearest(std::string_view key) const;

 private:
  std::vector<FieldGroup> groups_;
  std::vector<Field> fields_;
  std::unordered_map<std::string, size_t> by_key_;
};

}  // namespace hpqf::device
