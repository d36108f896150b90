#include "hpqf/engine/sensitivity/model_hessian.h"

#include <torch/nn/module.h>

#include "hpqf/engine/sensitivity/frozen_state.h"

namespace hpqf::engine::sensitivity {

ParameterBlocks parameter_blocks(const std::vector<LayerParameter>& parameters, const plan::Sensitivity& sensitivity) {
  ParameterBlocks blocks;
  blocks.layers.resize(sensitivity.layers.size());
  for (const LayerParameter& p : parameters) {
    if (!p.tensor.defined() || !p.tensor.requires_grad() || !p.tensor.is_floating_point()) continue;
    size_t index = 0;  // a tied weight appears under each of its layers
    while (index < blocks.parameters.size() && !blocks.parameters[index].is_same(p.tensor)) ++index;
    if (index == blocks.parameters.size()) blocks.parameters.push_back(p.tensor);
    if (p.tensor.dim() < 2) continue;
    for (size_t l = 0; l < sensitivity.layers.size(); ++l)
      if (sensitivity.layers[l].name == p.layer) blocks.layers[l].push_back(index);
  }
  return blocks;
}

HessianResult model_hessian(torch::nn::Module& model, plan::Sensitivity& sensitivity,
                            const std::function<at::Tensor()>& loss, const HessianOptions& options) {
  const FrozenState frozen(model);
  ParameterBlocks blocks = parameter_blocks(describe(model).parameters, sensitivity);
  Curvature curvature({std::move(blocks.parameters), [&loss](int64_t) { return loss(); }});
  return add_hessian(sensitivity, curvature, blocks.layers, options);
}

}  // namespace hpqf::engine::sensitivity
