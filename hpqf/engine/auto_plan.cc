#include "hpqf/engine/auto_plan.h"

#include <fmt/format.h>

#include "hpqf/engine/native_speed.h"

namespace hpqf::engine {

PrecisionPlan auto_plan(const plan::ModelFacts&, const std::vector<std::string>& sensitive) {
  std::string refused;
  std::string format = "fp32";
  for (Format f : {Format::bf16, Format::fp16}) {
    const std::string why = cpu_slow_reason(f);
    if (why.empty()) {
      format = formats::name(f);
      break;
    }
    refused += fmt::format("{}{}: {}", refused.empty() ? "" : "; ", formats::name(f), why);
  }
  const std::string reason = format == "fp32" ? "auto: nothing runs faster than fp32 here (" + refused + ")"
                                              : fmt::format("auto: {} is the fastest native format here", format);
  return PrecisionPlan::with_sensitive(format, sensitive, reason);
}

}  // namespace hpqf::engine
