#include "models/seed.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace hpqf::models {

void seed_weights(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace hpqf::models
