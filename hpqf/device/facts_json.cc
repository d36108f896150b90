// Device files: strict reading.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "hpqf/base/json.h"
#include "hpqf/base/text.h"
#include "hpqf/device/facts.h"

namespace hpqf::device {
namespace {

using base::Json;
using base::JsonObject;
using Sources = std::map<std::string, std::shared_ptr<const Source>>;

constexpr std::array kTrusts = {Trust::sheet, Trust::measured, Trust::several, Trust::single, Trust::derived};
constexpr int kDeepest = 8;  // lists of objects of numbers need three; a bound keeps hostile files off the stack

Trust parse_trust(const JsonObject& source) {
  const std::string text = source.text("trust");
  std::vector<std::string> names;
  for (const Trust trust : kTrusts) {
    if (text == name(trust)) return trust;
    names.push_back(name(trust));
  }
  throw Error(fmt::format("{}: trust \"{}\"", source.place(), text), fmt::format("{}", fmt::join(names, ", ")),
              "say how far this source is to be believed");
}

// "2024", "2024-03" or "2024-03-18".
bool is_date(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-dd";
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  auto two = [&](size_t at) { return 10 * (text[at] - '0') + (text[at + 1] - '0'); };
  return (text.size() < 7 || (two(5) >= 1 && two(5) <= 12)) && (text.size() < 10 || (two(8) >= 1 && two(8) <= 31));
}

Source parse_source(const Json& value, const std::string& name, std::string_view where) {
  const JsonObject object(value, fmt::format("{}: source \"{}\"", where, name));
  object.allow({"title", "url", "date", "trust"});
  Source source{name, object.text("title"), object.text("url"), object.text("date"), parse_trust(object)};
  if (source.title.empty())
    throw Error(object.place() + ": an empty title", "the title of a document", "say what the source is");
  if (!is_date(source.date))
    throw Error(fmt::format("{}: date \"{}\"", object.place(), source.date), "YYYY, YYYY-MM or YYYY-MM-DD",
                "give the date of the source, or the day it was read");
  return source;
}

Value to_value(const Json& json, const std::string& place, int depth = 0) {
  Value value;
  if (depth > kDeepest || json.is_null())
    throw Error(fmt::format("{}: {}", place, json.is_null() ? "null" : "lists and objects that nest too deeply"),
                fmt::format("values that nest at most {} deep, and none that is null", kDeepest),
                "leave out what is not known; flatten what nests");
  if (json.is_number()) {
    value.number = json.get<double>();
  } else if (json.is_string()) {
    value.kind = Value::Kind::text;
    value.text = json.get<std::string>();
  } else if (json.is_boolean()) {
    value.kind = Value::Kind::flag;
    value.flag = json.get<bool>();
  } else {
    value.kind = json.is_object() ? Value::Kind::object : Value::Kind::list;
    for (const auto& item : json.items()) {
      if (json.is_object()) value.keys.push_back(item.key());
      value.items.push_back(to_value(item.value(), place, depth + 1));
    }
  }
  return value;
}

// "" when the value is of the field's type and can be such a thing at all.
std::string why_not(const Field& field, const Value& value) {
  using Kind = Value::Kind;
  static constexpr std::array kNames = {"a number", "a text", "a flag", "a list", "an object"};
  const auto wanted = [&] {
    switch (field.type) {
      case FieldType::number:
      case FieldType::integer:
        return Kind::number;
      case FieldType::text:
        return Kind::text;
      case FieldType::flag:
        return Kind::flag;
      case FieldType::list:
        return Kind::list;
      case FieldType::object:
        break;
    }
    return Kind::object;
  }();
  if (value.kind != wanted) return fmt::format("{}", kNames[static_cast<size_t>(value.kind)]);
  if (field.type == FieldType::integer && value.number != std::floor(value.number)) return "a fraction";
  // Temperatures alone go below zero.
  if (wanted == Kind::number && value.number < 0 && field.unit.find('C') == std::string::npos) return "below zero";
  if (wanted == Kind::text && value.text.empty()) return "an empty text";
  if ((wanted == Kind::list || wanted == Kind::object) && value.items.empty()) return "empty";
  return "";
}

Fact parse_fact(const Json& json, const std::string& key, std::string_view where, const Schema& schema,
                const Sources& sources) {
  const std::string place = fmt::format("{}, key \"{}\"", where, key);
  const Field* field = schema.find(key);
  if (!field)
    throw Error(fmt::format("{}: a field that fields.json does not define", place),
                fmt::format("for example {}", fmt::join(schema.nearest(key), ", ")),
                "correct the key, or define it in fields.json");
  const JsonObject object(json, place);
  object.allow({"value", "source", "note"});
  if (!object.has("value"))
    throw Error(place + ": no value", fmt::format("a {} in \"value\"", name(field->type)),
                "add it, or leave the key out: what is not known has no entry");
  Fact fact{key, to_value(json["value"], place), nullptr, object.has("note") ? object.text("note") : "", false};
  if (const std::string wrong = why_not(*field, fact.value); !wrong.empty())
    throw Error(fmt::format("{}: {} ({})", place, wrong, fact.value.json()),
                fmt::format("a value of type {}{}", name(field->type), field->unit.empty() ? "" : " in " + field->unit),
                "correct the value");
  if (!object.has("source"))
    throw Error(place + ": no source", "the name of an entry of \"sources\"", "say where the value comes from");
  const std::string source = object.text("source");
  const auto it = sources.find(source);
  if (it == sources.end()) {
    std::vector<std::string> names;
    for (const auto& entry : sources) names.push_back(entry.first);
    throw Error(fmt::format("{}: source \"{}\"", place, source), fmt::format("{}", fmt::join(names, ", ")),
                "name an entry of \"sources\", or add one");
  }
  fact.source = it->second;
  return fact;
}

}  // namespace

DeviceFacts parse_device(std::string_view text, std::string_view where, std::string_view id, const Schema& schema,
                         std::vector<Error>& mistakes) {
  const Json json = base::parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.allow({"schema_version", "id", "sources", "facts"});
  if (const int64_t version = root.integer("schema_version", 1); version > 1)
    throw Error(fmt::format("{}: schema_version {}", where, version), "schema_version 1",
                "read it with the newer hpqf that it was written for");
  if (const std::string found = root.text("id"); found != id)
    throw Error(fmt::format("{}: id \"{}\"", where, found), fmt::format("\"{}\", the name of the file", id),
                "rename the file or correct the id");

  Sources sources;
  for (const auto& item : root.object("sources").items()) {
    try {
      sources[item.key()] = std::make_shared<Source>(parse_source(item.value(), item.key(), where));
    } catch (const Error& mistake) {
      mistakes.push_back(mistake);
    }
  }
  DeviceFacts device{std::string(id)};
  for (const auto& item : root.object("facts").items()) {
    try {
      device.set(parse_fact(item.value(), item.key(), where, schema, sources));
    } catch (const Error& mistake) {
      mistakes.push_back(mistake);
    }
  }
  return device;
}

}  // namespace hpqf::device
