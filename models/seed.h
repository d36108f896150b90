// The generator that torch::nn draws initial weights from.
#pragma once
#include <cstdint>

namespace hpqf::models {

void seed_weights(uint64_t seed);

}  // namespace hpqf::models
