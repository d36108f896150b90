// Whose weight is it? A registry from where a parameter's bytes live to the layer that owns it: W, W.t() and W.view()
// share them and optimizer steps keep them; module.to(dtype) gives new ones (Runtime::rescan).
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "hpqf/engine/layer.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {

void register_parameters(const std::vector<std::pair<at::Tensor, Layer*>>& parameters);
void unregister(const RuntimeState* runtime);

// The layer that owns the bytes of `t`, or null. With a layer `top` on the stack only `top` itself or a layer below it
// answers: the stack is exact, the registry merely finer (mha -> mha.out_proj).
Layer* owner_of(const at::Tensor& t, const Layer* top, Use use);

// Where C++ ops without a weight belong: the model ("") whose scope was opened last on any thread, null without one.
Layer* functional_owner();
void open_functional(Layer* root);
void close_functional(const RuntimeState* runtime);

}  // namespace hpqf::engine
