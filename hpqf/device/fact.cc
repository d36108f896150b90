#include "hpqf/device/fact.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/json.h"

namespace hpqf::device {
namespace {

// The shortest text that reads back as the same double, without an exponent where people would not write one.
std::string number_text(double x) {
  if (std::abs(x) < 1e15 && x == std::trunc(x)) return fmt::format("{:.0f}", x);
  return fmt::format("{}", x);
}

std::string joined(const Value& list, std::string (Value::*piece)() const) {
  std::string out;
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i) out += ", ";
    out += (list.items[i].*piece)();
  }
  return out;
}

}  // namespace

const Value* Value::at(std::string_view key) const {
  const auto it = std::find(keys.begin(), keys.end(), key);
  return kind != Kind::object || it == keys.end() ? nullptr : &items[static_cast<size_t>(it - keys.begin())];
}

std::string Value::shown() const {
  switch (kind) {
    case Kind::number:
      return number_text(number);
    case Kind::text:
      return text;
    case Kind::flag:
      return flag ? "yes" : "no";
    case Kind::list:
      return joined(*this, &Value::shown);
    case Kind::object:
      break;
  }
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) out += fmt::format("{}{}: {}", i ? ", " : "", keys[i], items[i].shown());
  return "{" + out + "}";
}

std::string Value::json() const {
  switch (kind) {
    case Kind::number:
      return number_text(number);
    case Kind::text:
      return base::json_quote(text);
    case Kind::flag:
      return flag ? "true" : "false";
    case Kind::list:
      return "[" + joined(*this, &Value::json) + "]";
    case Kind::object:
      break;
  }
  std::string out;
  for (size_t i = 0; i < items.size(); ++i)
    out += fmt::format("{}{}: {}", i ? ", " : "", base::json_quote(keys[i]), items[i].json());
  return "{" + out + "}";
}

const char* name(Trust trust) {
  switch (trust) {
    case Trust::sheet:
      return "sheet";
    case Trust::measured:
      return "measured";
    case Trust::several:
      return "several";
    case Trust::single:
      return "single";
    case Trust::derived:
      return "derived";
  }
  return "?";
}

}  // namespace hpqf::device
