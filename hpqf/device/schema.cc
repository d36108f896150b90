#include "hpqf/device/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpqf/base/error.h"
#include "hpqf/base/json.h"
#include "hpqf/base/text.h"

namespace hpqf::device {
namespace {

using base::Json;
using base::JsonObject;

constexpr std::array kTypes = {FieldType::number, FieldType::integer, FieldType::text,
                               FieldType::list,   FieldType::flag,    FieldType::object};

FieldType parse_type(const JsonObject& field) {
  const std::string text = field.text("type");
  std::vector<std::string> names;
  for (const FieldType type : kTypes) {
    if (text == name(type)) return type;
    names.push_back(name(type));
  }
  throw Error(fmt::format("{}: type \"{}\"", field.place(), text), fmt::format("{}", fmt::join(names, ", ")),
              fmt::format("for example \"{}\"", base::nearest(names, text, 1).front()));
}

}  // namespace

const char* name(FieldType type) {
  switch (type) {
    case FieldType::number:
      return "number";
    case FieldType::integer:
      return "integer";
    case FieldType::text:
      return "text";
    case FieldType::list:
      return "list";
    case FieldType::flag:
      return "flag";
    case FieldType::object:
      return "object";
  }
  return "?";
}

Schema Schema::parse(std::string_view text, std::string_view where) {
  const Json json = base::parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.allow({"schema_version", "groups", "fields"});
  if (const int64_t version = root.integer("schema_version", 1); version > 1)
    throw Error(fmt::format("{}: schema_version {}", where, version), "schema_version 1",
                "read it with the newer hpqf that it was written for");

  Schema schema;
  for (const Json& entry : root.array("groups")) {
    const JsonObject group(entry, fmt::format("{}: group {}", where, schema.groups_.size() + 1));
    group.allow({"name", "title", "unknown"});
    schema.groups_.push_back({group.text("name"), group.text("title"), group.text("unknown")});
  }
  for (const Json& entry : root.array("fields")) {
    const JsonObject field(entry, fmt::format("{}: field {}", where, schema.fields_.size() + 1));
    field.allow({"key", "group", "type", "unit", "meaning"});
    Field row{field.text("key"), field.text("group"), parse_type(field), field.text("unit"), field.text("meaning")};
    schema.group(row.group);
    if (!schema.by_key_.emplace(row.key, schema.fields_.size()).second)
      throw Error(fmt::format("{}: field \"{}\" twice", where, row.key), "each key once", "remove one of the two");
    schema.fields_.push_back(std::move(row));
  }
  return schema;
}

const Field* Schema::find(std::string_view key) const {
  const auto it = by_key_.find(std::string(key));
  return it == by_key_.end() ? nullptr : &fields_[it->second];
}

const Field& Schema::field(std::string_view key) const {
  if (const Field* field = find(key)) return *field;
  throw Error(fmt::format("a field \"{}\"", key), fmt::format("for example {}", fmt::join(nearest(key), ", ")),
              "`hpqf device show ID --all` lists every field");
}

const FieldGroup& Schema::group(std::string_view name) const {
  const auto it = std::find_if(groups_.begin(), groups_.end(), [&](const FieldGroup& g) { return g.name == name; });
  if (it != groups_.end()) return *it;
  std::vector<std::string> names;
  for (const FieldGroup& group : groups_) names.push_back(group.name);
  throw Error(fmt::format("a group of fields \"{}\"", name), fmt::format("{}", fmt::join(names, ", ")),
              "take one of these names");
}

std::vector<std::string> Schema::nearest(std::string_view key) const {
  std::vector<std::string> keys;
  for (const Field& field : fields_) keys.push_back(field.key);
  return base::nearest(keys, key);
}

}  // namespace hpqf::device
