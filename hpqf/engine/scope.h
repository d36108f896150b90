// Who is asking: is this thread inside a scope, and which layer does an op belong to?
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "hpqf/engine/key.h"
#include "hpqf/engine/layer.h"

namespace hpqf::engine {

bool set_scope(bool on);  // returns the previous state

// What the op does with the weight; decides between the layers of a tied one.
enum class Use : uint8_t { product, lookup };

// The layer an op belongs to, or null when the op is not ours to touch: passthrough, a backward GEMM of ordinary
// autograd (inside a graph task with no layer pushed), no layer known. `w` may be undefined (functional ops).
Layer* find_layer(const at::Tensor& w, Use use = Use::product);
inline Layer* find_layer() { return find_layer(at::Tensor()); }

// Is this tensor a parameter (or a view of one) of `layer`'s model?
bool is_parameter(const at::Tensor& t);

// Second line of every kernel. Layers under a plan switch the user's torch.autocast off as well, or AutocastCPU would
// cast an fp32 layer to bf16; ops that are not ours keep it, so there only our own key goes.
struct OwnKeyOff {
  c10::impl::ExcludeDispatchKeyGuard guard{key()};
};
struct AllAutocastOff {
  c10::impl::ExcludeDispatchKeyGuard guard{c10::autocast_dispatch_keyset};
};

// Transforms in which a custom autograd node cannot run (functorch, forward-mode AD): the text for the audit, or "".
std::string_view transform_active(const at::Tensor& a, const at::Tensor& b);

}  // namespace hpqf::engine
