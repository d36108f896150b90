// Uses the torch part as installed: an unmodified module under a plan, against the same numbers computed by hand.
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <cstdio>
#include <memory>

#include "hpqf/engine/runtime.h"
#include "hpqf/observe/audit.h"

int main() {
  torch::manual_seed(1);
  torch::nn::Linear layer(torch::nn::LinearOptions(64, 32).bias(false));
  const torch::Tensor x = torch::randn({8, 64});
  const auto to_bf16 = [](const torch::Tensor& t) { return t.to(torch::kBFloat16).to(torch::kFloat32); };

  const torch::Tensor before = layer(x);
  auto audit = std::make_shared<hpqf::observe::Audit>();
  torch::Tensor inside;
  {
    hpqf::Runtime runtime(*layer, hpqf::PrecisionPlan::uniform("bf16"),
                          {.events = audit, .force_implementation = "emulated"});
    inside = layer(x);
  }
  const torch::Tensor by_hand = torch::matmul(to_bf16(x), to_bf16(layer->weight).t());
  const bool right = torch::allclose(inside, by_hand, 1e-5, 1e-5) && !torch::equal(inside, before);
  const bool restored = torch::equal(layer(x), before);
  const bool audited = !audit->report().rows.empty();
  std::printf("with torch: numbers %s, model %s, audit %s\n", right ? "right" : "WRONG",
              restored ? "restored" : "CHANGED", audited ? "filled" : "EMPTY");
  return right && restored && audited ? 0 : 1;
}
