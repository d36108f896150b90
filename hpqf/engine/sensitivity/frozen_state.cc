#include "hpqf/engine/sensitivity/frozen_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

namespace hpqf::engine::sensitivity {

FrozenState::FrozenState(torch::nn::Module& model) : model_(model), training_(model.is_training()) {
  for (const auto& module : model.modules(/*include_self=*/false))
    modes_.emplace_back(module.get(), module->is_training());
  for (const at::Tensor& buffer : model.buffers())
    if (buffer.defined()) buffers_.emplace_back(buffer, buffer.detach().clone());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator_ = generator.get_state();
  model.eval();
}

FrozenState::~FrozenState() {
  model_.train(training_);
  for (const auto& [module, training] : modes_) module->train(training);  // parents come before their children
  at::NoGradGuard no_grad;
  for (const auto& [buffer, content] : buffers_)
    if (!buffer.equal(content)) buffer.copy_(content);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(generator_);
}

}  // namespace hpqf::engine::sensitivity
