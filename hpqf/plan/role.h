// What a tensor is to a layer, and what a layer is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::plan {

// The first three are the GEMM operands.
enum class Role : uint8_t { weight, input, output_grad, accumulate, saved, master, state, wire };
inline constexpr int kRoleCount = 8;
HPQF_API const char* name(Role role);
HPQF_API std::optional<Role> find_role(std::string_view name);

// What a layer computes; decides which rules hold for it. `other` covers containers and modules HPQF does not know by
// type: their functional matmuls still follow the plan.
enum class LayerKind : uint8_t {
  linear,
  conv,
  conv_transpose,
  rnn,
  embedding,
  attention,
  norm,
  softmax,
  loss,
  activation,
  position,  // computes positions or rotary tables: exact angles, whatever the plan
  other
};
HPQF_API const char* name(LayerKind kind);
HPQF_API std::optional<LayerKind> find_layer_kind(std::string_view name);

struct LayerFacts {
  std::string name;  // qualified name as in named_modules(); "" is the model itself
  std::string type;  // class name, e.g. "Conv2d"
  LayerKind kind = LayerKind::other;
  int64_t parameters = 0;  // of this module alone, children not counted
};

struct ModelFacts {
  std::string model;               // class name of the root
  std::vector<LayerFacts> layers;  // in definition order
};

}  // namespace hpqf::plan
