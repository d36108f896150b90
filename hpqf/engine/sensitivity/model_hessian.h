// The Hessian columns of a C++ model's sensitivity.
#pragma once
#include <functional>

#include "hpqf/engine/runtime.h"
#include "hpqf/engine/sensitivity/hessian.h"

namespace torch::nn {
class Module;
}

namespace hpqf::engine::sensitivity {

// `loss` gives the mean loss of always the same batch, with a fresh graph. Of all trainable parameters; a layer's block
// are its own of two dimensions and more. The model is left as it was; eval mode meanwhile.
HPQF_API HessianResult model_hessian(torch::nn::Module& model, plan::Sensitivity& sensitivity,
                                     const std::function<at::Tensor()>& loss, const HessianOptions& options = {});

// For each layer of the sensitivity the indices of its weights among the parameters, each of which is there once.
struct ParameterBlocks {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<size_t>> layers;
};
HPQF_API ParameterBlocks parameter_blocks(const std::vector<LayerParameter>& parameters,
                                          const plan::Sensitivity& sensitivity);

}  // namespace hpqf::engine::sensitivity
