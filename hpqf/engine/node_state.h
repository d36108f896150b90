// What a custom autograd node keeps for its backward beside tensors: a plain C++ value, carried by the node's
// saved_data.
#pragma once
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <utility>

namespace hpqf::engine {

template <class T>
class NodeState : public torch::CustomClassHolder {
 public:
  explicit NodeState(std::shared_ptr<T> value) : value_(std::move(value)) {}

  static void save(torch::autograd::AutogradContext& node, std::shared_ptr<T> value) {
    node.saved_data["state"] = c10::IValue::make_capsule(c10::make_intrusive<NodeState>(std::move(value)));
  }
  // Lives as long as the node.
  static const T& of(torch::autograd::AutogradContext& node) {
    return *c10::static_intrusive_pointer_cast<NodeState>(node.saved_data["state"].toCapsule())->value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace hpqf::engine
