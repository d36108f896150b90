#include "hpqf/observe/event.h"

#include <array>

namespace hpqf::observe {
namespace {

constexpr std::array kPassNames = {"forward", "dgrad", "wgrad", "backward"};
static_assert(kPassNames.size() == static_cast<size_t>(Pass::backward) + 1);

}  // namespace

const char* name(Pass pass) { return kPassNames[static_cast<size_t>(pass)]; }

std::optional<Pass> find_pass(std::string_view name) {
  for (size_t i = 0; i < kPassNames.size(); ++i)
    if (name == kPassNames[i]) return static_cast<Pass>(i);
  return std::nullopt;
}

}  // namespace hpqf::observe
