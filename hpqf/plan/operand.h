// The four operands whose formats a plan chooses, as an index: scores, policies and logs go over them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {

// dgrad and wgrad are the output gradient as it enters the GEMM of the input's and of the weight's gradient.
enum class Operand : uint8_t { weight, input, dgrad, wgrad };
inline constexpr std::array kOperands = {Operand::weight, Operand::input, Operand::dgrad, Operand::wgrad};

HPQF_API const char* name(Operand operand);  // the role names of a plan file
HPQF_API std::optional<Operand> find_operand(std::string_view name);
HPQF_API Operand parse_operand(std::string_view name, std::string_view where);  // Error with the list of names

HPQF_API BlockFormat& format_of(LayerPrecision& precision, Operand operand);
HPQF_API const BlockFormat& format_of(const LayerPrecision& precision, Operand operand);

}  // namespace hpqf::plan
