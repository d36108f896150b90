// Uses the torch-free library as installed: a format, a kernel and a plan.
#include <cmath>
#include <cstdio>
#include <vector>

#include "hpqf/formats/format.h"
#include "hpqf/kernels/quantize.h"
#include "hpqf/plan/plan.h"

int main() {
  // 1 + 2^-8 and 1 + 3 * 2^-8 lie midway between two bf16 numbers; the even neighbours are 1 and 1 + 2^-6.
  std::vector<float> x = {1.00390625f, 1.01171875f, -0.0f, 65280.0f}, rounded(x.size());
  const std::vector<float> expected = {1.0f, 1.015625f, -0.0f, 65280.0f};
  hpqf::kernels::quantize_dequantize(x.data(), rounded.data(), {1, static_cast<int64_t>(x.size()), 1},
                                     hpqf::formats::default_block(hpqf::Format::bf16));
  for (size_t i = 0; i < x.size(); ++i) {
    if (rounded[i] != expected[i] || std::signbit(rounded[i]) != std::signbit(expected[i])) {
      std::printf("element %zu: %g, not %g\n", i, rounded[i], expected[i]);
      return 1;
    }
  }

  const auto plan = hpqf::PrecisionPlan::with_sensitive("fp16", {"conv1"});
  const bool total = plan.at("conv1").all_fp32() && plan.at("layer3.conv2").weight.format == hpqf::Format::fp16 &&
                     hpqf::PrecisionPlan::from_json(plan.to_json()) == plan;
  std::printf("core: bf16 rounding right, plan %s\n", total ? "right" : "WRONG");
  return total ? 0 : 1;
}
