#include "models/model.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/module.h>

namespace hpqf::models {

int64_t Model::parameters() const {
  int64_t count = 0;
  for (const at::Tensor& parameter : module->parameters()) count += parameter.numel();
  return count;
}

at::Tensor loss(Task task, const at::Tensor& output, const at::Tensor& target) {
  if (classifies(task)) return at::cross_entropy_loss(output, target);
  return at::cross_entropy_loss(output.flatten(0, -2), target.flatten());
}

}  // namespace hpqf::models
