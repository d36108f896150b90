// Optional members and nlohmann-json: an absent fact is an absent key. For .cc files only.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace hpqf::device::machine {

using Json = nlohmann::ordered_json;

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}
inline void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

template <typename T>
void get(const Json& json, const char* key, std::optional<T>& value) {
  if (json.contains(key)) value = json.at(key).get<T>();
}
template <typename T>
void get(const Json& json, const char* key, T& value) {
  if (json.contains(key)) value = json.at(key).get<T>();
}

}  // namespace hpqf::device::machine
