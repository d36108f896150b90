#include "hpqf/engine/scope.h"

#include <torch/csrc/autograd/graph_task.h>

#include <vector>

#include "hpqf/engine/identity.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

struct Frame {
  Layer* layer;
  bool previous_scope;
};
thread_local std::vector<Frame> t_stack;
thread_local int t_passthrough = 0;

}  // namespace

bool set_scope(bool on) {
  const auto k = key();
  const bool previous = c10::impl::tls_is_dispatch_key_included(k) && !c10::impl::tls_is_dispatch_key_excluded(k);
  // Both are needed: every autocast key is excluded by default, and exclusion wins.
  c10::impl::tls_set_dispatch_key_included(k, on);
  c10::impl::tls_set_dispatch_key_excluded(k, !on);
  return previous;
}

Layer* find_layer(const at::Tensor& w, Use use) {
  if (t_passthrough > 0) return nullptr;
  Layer* top = t_stack.empty() ? nullptr : t_stack.back().layer;
  // Backward GEMMs of ordinary autograd nodes reach the key too. A checkpoint's recomputation also runs inside a graph
  // task, but there the front end has pushed its layers.
  if (!top && torch::autograd::get_current_graph_task_id() >= 0) return nullptr;
  if (Layer* owner = w.defined() ? owner_of(w, top, use) : nullptr) return owner;
  return top ? top : functional_owner();
}

bool is_parameter(const at::Tensor& t) { return owner_of(t, nullptr, Use::product) != nullptr; }

std::string_view transform_active(const at::Tensor& a, const at::Tensor& b) {
  using c10::DispatchKey;
  if (c10::impl::tls_is_dispatch_key_included(DispatchKey::FuncTorchDynamicLayerFrontMode))
    return "a functorch transform (grad, vmap, jvp) is active: custom autograd nodes cannot run under it";
  for (const auto* t : {&a, &b})
    if (t->defined() && t->_fw_grad(0).defined())
      return "forward-mode AD is active: rounding has no forward derivative";
  return {};
}

Scope::Scope(bool on) : previous_(set_scope(on)) {}
Scope::~Scope() { set_scope(previous_); }

Passthrough::Passthrough() { ++t_passthrough; }
Passthrough::~Passthrough() { --t_passthrough; }

void push_layer(Layer* layer) { t_stack.push_back({layer, set_scope(true)}); }
void pop_layer() noexcept {
  if (t_stack.empty()) return;
  set_scope(t_stack.back().previous_scope);
  t_stack.pop_back();
}

}  // namespace hpqf::engine
