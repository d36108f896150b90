// Every reference model, by name, in one array.
#pragma once
#include <span>
#include <string_view>

#include "models/model.h"

namespace hpqf::models {

struct ModelEntry {
  const char* name;
  Task task;
  Model (*make)(const ModelOptions& options);  // seeds torch's CPU generator with options.seed
  const char* summary;
};

std::span<const ModelEntry> all_models();
const ModelEntry& find_model(std::string_view name);  // Error with the list of names

}  // namespace hpqf::models
