// A C++ model as a measurement must leave it: eval mode while it lives; afterwards each module's mode, every buffer and
// torch's CPU generator are what they were.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace hpqf::engine::sensitivity {

class FrozenState {
 public:
  explicit FrozenState(torch::nn::Module& model);
  ~FrozenState();
  FrozenState(const FrozenState&) = delete;
  FrozenState& operator=(const FrozenState&) = delete;

 private:
  torch::nn::Module& model_;
  bool training_;
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  // and their content
  at::Tensor generator_;
};

}  // namespace hpqf::engine::sensitivity
