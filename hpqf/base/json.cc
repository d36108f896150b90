#include "hpqf/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "hpqf/base/error.h"

namespace hpqf::base {
namespace {

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("line {}, column {}", line, std::max<size_t>(column, 1));
}

std::string shown(const Json& value) {
  constexpr size_t kLongest = 40;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// No record needs ten. Copies and comparisons of JSON recurse: a hostile file must not reach the end of the stack.
constexpr int kDeepest = 100;

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string duplicate;
  auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest)
      throw Error(fmt::format("{}: objects and lists that nest deeper than {}", where, kDeepest),
                  fmt::format("at most {} levels", kDeepest), "this is no record of HPQF: give the right file");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && duplicate.empty())
      duplicate = parsed.get<std::string>();
    return true;
  };
  Json value;
  try {
    value = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::parse_error& e) {
    const bool cut = e.byte > text.size();
    throw Error(fmt::format("{}: {} at {}", where, cut ? "JSON that ends too early" : "text that is not JSON",
                            line_and_column(text, e.byte)),
                "one complete JSON object",
                cut ? "the file is truncated: take a complete copy" : "correct the syntax there");
  } catch (const Json::out_of_range& e) {
    throw Error(fmt::format("{}: a number that no double holds ({})", where, e.what()), "finite numbers",
                "correct the number");
  }
  if (!duplicate.empty())
    throw Error(fmt::format("{}: key \"{}\" twice in one object", where, duplicate), "each key once",
                "remove one of the two");
  return value;
}

std::string json_quote(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

JsonObject::JsonObject(const Json& value, std::string place) : value_(value), place_(std::move(place)) {
  if (!value.is_object())
    throw Error(fmt::format("{}: {} ({})", place_, value.type_name(), shown(value)), "a JSON object { ... }",
                "put the keys and values in braces");
}

void JsonObject::allow(std::initializer_list<std::string_view> keys) const {
  for (const auto& item : value_.items())
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      throw Error(fmt::format("{}: unknown key \"{}\"", place_, item.key()), fmt::format("{}", fmt::join(keys, ", ")),
                  "correct or remove the key");
}

const Json& JsonObject::at(std::string_view key, std::string_view wanted) const {
  auto it = value_.find(key);
  if (it == value_.end())
    throw Error(fmt::format("{}: no key \"{}\"", place_, key), fmt::format("\"{}\": {}", key, wanted), "add the key");
  return *it;
}

void JsonObject::wrong_type(std::string_view key, const Json& found, std::string_view wanted) const {
  throw Error(fmt::format("{}, key \"{}\": {} ({})", place_, key, found.type_name(), shown(found)), std::string(wanted),
              fmt::format("give \"{}\" such a value", key));
}

std::string JsonObject::text(std::string_view key) const {
  constexpr std::string_view wanted = "a string";
  const Json& value = at(key, wanted);
  if (!value.is_string()) wrong_type(key, value, wanted);
  return value.get<std::string>();
}

int64_t JsonObject::integer(std::string_view key, int64_t least) const {
  const std::string wanted = fmt::format("a whole number from {} to {}", least, INT64_MAX);
  const Json& value = at(key, wanted);
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!fits || value.get<int64_t>() < least) wrong_type(key, value, wanted);
  return value.get<int64_t>();
}

double JsonObject::number(std::string_view key, double least) const {
  const std::string wanted = fmt::format("a finite number not below {}", least);
  const Json& value = at(key, wanted);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < least)
    wrong_type(key, value, wanted);
  return value.get<double>();
}

bool JsonObject::boolean(std::string_view key) const {
  constexpr std::string_view wanted = "true or false";
  const Json& value = at(key, wanted);
  if (!value.is_boolean()) wrong_type(key, value, wanted);
  return value.get<bool>();
}

const Json& JsonObject::array(std::string_view key) const {
  constexpr std::string_view wanted = "a list [ ... ]";
  const Json& value = at(key, wanted);
  if (!value.is_array()) wrong_type(key, value, wanted);
  return value;
}

const Json& JsonObject::object(std::string_view key) const {
  constexpr std::string_view wanted = "a JSON object { ... }";
  const Json& value = at(key, wanted);
  if (!value.is_object()) wrong_type(key, value, wanted);
  return value;
}

void JsonObject::check_schema(std::string_view schema, int64_t version) const {
  if (const std::string found = text("schema"); found != schema)
    throw Error(fmt::format("{}: schema \"{}\"", place_, found), fmt::format("schema \"{}\"", schema),
                "this is another kind of file: give the right one");
  if (const int64_t found = integer("version", 1); found > version)
    throw Error(fmt::format("{}: {} version {}", place_, schema, found), fmt::format("versions up to {}", version),
                "read it with the newer hpqf that wrote it");
}

}  // namespace hpqf::base
