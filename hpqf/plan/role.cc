#include "hpqf/plan/role.h"

#include <array>

namespace hpqf::plan {
namespace {

constexpr std::array<const char*, kRoleCount> kRoleNames = {"weight", "input",  "output_grad", "accumulate",
                                                            "saved",  "master", "state",       "wire"};

constexpr std::array kKindNames = {"linear", "conv",    "conv_transpose", "rnn",        "embedding", "attention",
                                   "norm",   "softmax", "loss",           "activation", "position",  "other"};
static_assert(kKindNames.size() == static_cast<size_t>(LayerKind::other) + 1);

}  // namespace

const char* name(Role role) { return kRoleNames[static_cast<size_t>(role)]; }

const char* name(LayerKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<LayerKind> find_layer_kind(std::string_view name) {
  for (size_t i = 0; i < kKindNames.size(); ++i)
    if (name == kKindNames[i]) return static_cast<LayerKind>(i);
  return std::nullopt;
}

std::optional<Role> find_role(std::string_view name) {
  for (size_t i = 0; i < kRoleNames.size(); ++i)
    if (name == kRoleNames[i]) return static_cast<Role>(i);
  return std::nullopt;
}

}  // namespace hpqf::plan
