// LayerPrecision: shorthands, comparisons, and what this version can train with.
#include <fmt/format.h>

#include <array>

#include "hpqf/base/error.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {
namespace {

constexpr std::array<RoleField, 8> kRoleFields = {{{"weight", &LayerPrecision::weight},
                                                   {"input", &LayerPrecision::input},
                                                   {"dgrad", &LayerPrecision::dgrad},
                                                   {"wgrad", &LayerPrecision::wgrad},
                                                   {"saved", &LayerPrecision::saved},
                                                   {"master", &LayerPrecision::master},
                                                   {"state", &LayerPrecision::state},
                                                   {"wire", &LayerPrecision::wire}}};
constexpr size_t kOperandFields = 4;  // the first four are GEMM operands

void check_block(const BlockFormat& block, const std::string& place) {
  try {
    formats::check(block);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", place, e.asked()), e.allowed(), e.todo());
  }
  if (block.shape == formats::BlockShape::vector && block.block == 1)
    throw Error(fmt::format("{}: {}, a scale for every element", place, formats::to_string(block)),
                "1xN with N of 2 or more: scales cost 32/N bits an element",
                "use 64, or leave the block to the default");
}

bool is_fp8(std::string_view text) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= 3 && lower(text[0]) == 'f' && lower(text[1]) == 'p' && text[2] == '8' &&
         (text.size() == 3 || text[3] == '[');
}

}  // namespace

std::span<const RoleField> role_fields() { return kRoleFields; }

bool LayerPrecision::same_formats(const LayerPrecision& o) const {
  for (const RoleField& role : kRoleFields)
    if (!(this->*role.field == o.*role.field)) return false;
  return accumulate == o.accumulate;
}

bool LayerPrecision::all_fp32() const {
  for (size_t i = 0; i < kOperandFields; ++i)
    if ((this->*kRoleFields[i].field).format != Format::fp32) return false;
  return true;
}

void check(const LayerPrecision& precision, std::string_view where) {
  for (size_t i = 0; i < kRoleFields.size(); ++i) {
    const BlockFormat& block = precision.*kRoleFields[i].field;
    const std::string place = fmt::format("{}, role \"{}\"", where, kRoleFields[i].name);
    check_block(block, place);
    if (i >= kOperandFields && block.format != Format::fp32)
      throw Error(fmt::format("{}: {}", place, formats::to_string(block)), "only fp32 is available in this version",
                  "leave the role out, or set it to \"fp32\"");
  }
  if (precision.accumulate != Format::fp32)
    throw Error(fmt::format("{}, role \"accumulate\": {}", where, formats::name(precision.accumulate)),
                "only fp32 is available in this version", "leave the role out, or set it to \"fp32\"");
}

LayerPrecision uniform_precision(std::string_view format, std::string reason) {
  if (format == "auto")
    throw Error("precision \"auto\" where one format is needed", "a format such as fp32, bf16, fp16, fp8 or int8[1x64]",
                "name a format, or let the trainer choose: it resolves \"auto\" from the model and this machine");
  LayerPrecision precision;
  if (is_fp8(format)) {
    const std::string block(format.substr(3));
    precision.weight = precision.input = formats::parse_block_format("fp8_e4m3" + block);
    precision.dgrad = precision.wgrad = formats::parse_block_format("fp8_e5m2" + block);
  } else {
    precision.weight = precision.input = precision.dgrad = precision.wgrad = formats::parse_block_format(format);
  }
  precision.reason = std::move(reason);
  check(precision, fmt::format("precision \"{}\"", format));
  return precision;
}

}  // namespace hpqf::plan
