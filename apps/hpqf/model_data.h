// A reference model and the data it learns from, made to fit each other.
#pragma once
#include <cstdint>
#include <string>

#include "models/data/dataset.h"
#include "models/registry.h"

namespace hpqf::app {

inline constexpr int64_t kContext = 128;  // bytes the text models see at once
inline constexpr int64_t kWords = 64;     // tokens of a sentence: 99.7 % of the verses are no longer

struct ModelData {
  const models::ModelEntry& entry;
  models::Dataset dataset;
  models::Model model;
};

// `limit`: only the first so many training samples; 0: all. Error: an unknown model, unknown or missing data, data of
// another kind than the model learns from.
ModelData load_model_data(const std::string& model, const std::string& data, int64_t limit, uint64_t seed);

}  // namespace hpqf::app
