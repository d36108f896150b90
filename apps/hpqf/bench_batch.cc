#include "apps/hpqf/bench_batch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "apps/hpqf/train_config.h"

namespace hpqf::app {

train::Batch synthetic_batch(models::Task task, int64_t samples) {
  const at::Generator random = at::detail::createCPUGenerator(1);
  const auto integers = at::TensorOptions(at::kLong);
  if (task == models::Task::images) {
    at::Tensor images = at::randn({samples, 1, kBenchImage, kBenchImage}, random, at::TensorOptions(at::kFloat));
    return {std::move(images), at::randint(10, {samples}, random, integers)};
  }
  if (task == models::Task::sentences) {
    at::Tensor words = at::randint(1, kBenchVocabulary, {samples, kBenchContext}, random, integers);
    return {std::move(words), at::randint(10, {samples}, random, integers)};
  }
  at::Tensor bytes = at::randint(256, {samples, kBenchContext}, random, integers);
  return {std::move(bytes), at::randint(256, {samples, kBenchContext}, random, integers)};
}

int64_t default_batch_size(const std::string& model) {
  for (const Setting& setting : model_defaults(model)) {
    if (setting.key == "batch-size") return std::stoll(setting.values.front());
  }
  return 32;
}

}  // namespace hpqf::app
