#include "hpqf/engine/sensitivity/ties.h"

namespace hpqf::engine::sensitivity {

std::string Ties::root(std::string name) const {
  for (auto it = parent_.find(name); it != parent_.end(); it = parent_.find(name)) name = it->second;
  return name;
}

void Ties::join(const std::string& a, const std::string& b) {
  const std::string x = root(a), y = root(b);
  if (x != y) parent_[y] = x;
}

void Ties::see(const Layer& layer, const ProbedOp& op) {
  if (op.weight.defined()) {
    const void* at = op.weight.storage().unsafeGetStorageImpl();
    const auto [it, fresh] = weights_.try_emplace(at, layer.name);
    if (!fresh) join(it->second, layer.name);
  }
  if (layer.kind == plan::LayerKind::linear && op.input.defined()) {
    const auto dot = layer.name.rfind('.');
    const std::string above = dot == std::string::npos ? "" : layer.name.substr(0, dot);
    const auto [it, fresh] = inputs_.try_emplace({op.input.const_data_ptr(), above}, layer.name);
    if (!fresh) join(it->second, layer.name);
    held_.push_back(op.input);
  }
}

std::vector<std::vector<std::string>> Ties::groups(const plan::Sensitivity& sensitivity) const {
  std::map<std::string, size_t> place;
  std::vector<std::vector<std::string>> all;
  for (const plan::LayerSensitivity& layer : sensitivity.layers) {
    const auto [it, fresh] = place.try_emplace(root(layer.name), all.size());
    if (fresh) all.emplace_back();
    all[it->second].push_back(layer.name);
  }
  std::erase_if(all, [](const auto& group) { return group.size() < 2; });
  return all;
}

}  // namespace hpqf::engine::sensitivity
