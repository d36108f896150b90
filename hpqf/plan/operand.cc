#include "hpqf/plan/operand.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"

namespace hpqf::plan {

const char* name(Operand operand) { return role_fields()[static_cast<size_t>(operand)].name; }

std::optional<Operand> find_operand(std::string_view text) {
  for (Operand operand : kOperands)
    if (text == name(operand)) return operand;
  return std::nullopt;
}

Operand parse_operand(std::string_view text, std::string_view where) {
  if (const auto found = find_operand(text)) return *found;
  throw Error(fmt::format("{}: role \"{}\"", where, text), "weight, input, dgrad or wgrad", "correct the role");
}

BlockFormat& format_of(LayerPrecision& precision, Operand operand) {
  return precision.*role_fields()[static_cast<size_t>(operand)].field;
}

const BlockFormat& format_of(const LayerPrecision& precision, Operand operand) {
  return precision.*role_fields()[static_cast<size_t>(operand)].field;
}

}  // namespace hpqf::plan
