#include "hpqf/device/facts.h"

namespace hpqf::device {

const Fact* DeviceFacts::find(std::string_view key) const {
  const auto it = facts_.find(key);
  return it == facts_.end() ? nullptr : &it->second;
}

std::optional<double> DeviceFacts::number(std::string_view key) const {
  const Fact* fact = find(key);
  return fact && fact->value.kind == Value::Kind::number ? std::optional(fact->value.number) : std::nullopt;
}

std::optional<bool> DeviceFacts::flag(std::string_view key) const {
  const Fact* fact = find(key);
  return fact && fact->value.kind == Value::Kind::flag ? std::optional(fact->value.flag) : std::nullopt;
}

std::optional<std::string> DeviceFacts::text(std::string_view key) const {
  const Fact* fact = find(key);
  return fact && fact->value.kind == Value::Kind::text ? std::optional(fact->value.text) : std::nullopt;
}

std::vector<std::string> DeviceFacts::texts(std::string_view key) const {
  std::vector<std::string> out;
  if (const Fact* fact = find(key); fact && fact->value.kind == Value::Kind::list) {
    for (const Value& item : fact->value.items) {
      if (item.kind == Value::Kind::text) out.push_back(item.text);
    }
  }
  return out;
}

std::string DeviceFacts::name() const { return text("identity.name").value_or(id_); }
std::string DeviceFacts::vendor() const { return text("identity.vendor").value_or(""); }

void DeviceFacts::set(Fact fact) {
  std::string key = fact.key;
  facts_.insert_or_assign(std::move(key), std::move(fact));
}

void DeviceFacts::lay_over(const DeviceFacts& of_user) {
  for (const auto& [key, fact] : of_user.facts_) {
    Fact marked = fact;
    marked.user = true;
    set(std::move(marked));
  }
}

}  // namespace hpqf::device
