// The state of a torch optimizer as named tensors, so that a checkpoint can be inspected, checked and moved.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/train/tensor_file.h"

namespace torch::optim {
class Optimizer;
}

namespace hpqf::train {

using engine::LayerParameter;

// "sgd", "adam", "adamw", "rmsprop", "adagrad"; "" for any other class.
HPQF_API std::string optimizer_name(const torch::optim::Optimizer& optimizer);

// One by name, over `parameters`. Error with the list of names, or when a number is impossible.
struct OptimizerSpec {
  std::string name = "adamw";  // sgd | adamw
  double lr = 1e-3;
  double momentum = 0;  // sgd
  double weight_decay = 0;
};
HPQF_API std::shared_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerSpec& spec,
                                                                 const std::vector<LayerParameter>& parameters);

// Names: "<qualified parameter>.<state>", e.g. "conv1.weight.momentum_buffer"; counters are int64 scalars. A class
// without a name above gives one uint8 tensor "archive" (torch::serialize). Parameters without state yet give nothing.
HPQF_API std::vector<NamedTensor> optimizer_tensors(const torch::optim::Optimizer& optimizer,
                                                    const std::vector<LayerParameter>& parameters);

// Restores them. Checks first, touches after: on Error the optimizer is as it was. `where` names the file in errors.
HPQF_API void check_optimizer_tensors(const torch::optim::Optimizer& optimizer,
                                      const std::vector<LayerParameter>& parameters,
                                      const std::vector<NamedTensor>& state, const std::string& where);
HPQF_API void restore_optimizer(torch::optim::Optimizer& optimizer, const std::vector<LayerParameter>& parameters,
                                const std::vector<NamedTensor>& state, const std::string& where);

}  // namespace hpqf::train
