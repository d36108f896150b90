#include "hpqf/plan/policy/rungs.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"

namespace hpqf::plan {

Rungs default_rungs() {
  return {{"int4", "int8"},     {"int7", "int8"},     {"int8", "int12"}, {"int12", "bf16"}, {"int16", "fp32"},
          {"fp8_e4m3", "bf16"}, {"fp8_e5m2", "bf16"}, {"fp16", "fp32"},  {"bf16", "fp32"},  {"tf32", "fp32"}};
}

std::optional<BlockFormat> rung_above(const Rungs& rungs, const BlockFormat& format) {
  const auto next = rungs.find(formats::name(format.format));
  if (next == rungs.end()) return std::nullopt;
  return formats::default_block(formats::parse_format(next->second));
}

void check(const Rungs& rungs) {
  for (const auto& [from, to] : rungs) {
    if (const std::string known = formats::name(formats::parse_format(from)); known != from)
      throw Error(fmt::format("a ladder from \"{}\"", from), fmt::format("\"{}\"", known), "write the name so");
    std::string now = from;
    for (size_t length = 0; rungs.contains(now); ++length) {
      if (length > rungs.size())
        throw Error(fmt::format("a ladder that comes back to {}", now), "each format to a better one",
                    "remove the circle");
      now = formats::name(formats::parse_format(rungs.at(now)));
    }
  }
}

}  // namespace hpqf::plan
