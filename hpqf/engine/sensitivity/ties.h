// Layers that should take the same formats: they share a weight, or they are siblings that read the same tensor
// (query, key and value).
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hpqf/engine/probe.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine::sensitivity {

class Ties {
 public:
  void see(const Layer& layer, const ProbedOp& op);  // the ops of one forward pass
  // Groups of two and more, of the layers in `sensitivity` and in their order.
  std::vector<std::vector<std::string>> groups(const plan::Sensitivity& sensitivity) const;

 private:
  void join(const std::string& a, const std::string& b);
  std::string root(std::string name) const;

  std::map<const void*, std::string> weights_;                         // by address: who had it first
  std::map<std::pair<const void*, std::string>, std::string> inputs_;  // ... and the parent module
  std::vector<at::Tensor> held_;  // addresses stay taken while the pass is looked at
  std::map<std::string, std::string> parent_;
};

}  // namespace hpqf::engine::sensitivity
