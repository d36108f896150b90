// Layer fallback: a layer whose format overflows leaves that format; the others stay.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/observation.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {

struct FallbackRules {
  bool enabled = true;
  int64_t forward_overflows = 1;   // skipped steps in which a layer's forward cast overflowed, before it is raised.
                                   // A loss scale cannot help there, so waiting only loses steps.
  int64_t gradient_overflows = 8;  // the same for output_grad casts: normally the loss scale's business
  std::string to = "fp32";
};

struct FallbackState {             // goes into checkpoints
  std::map<std::string, int64_t> forward, gradient;   // skipped steps counted per layer since the last clean streak
  bool operator==(const FallbackState&) const = default;
};

struct FallbackDecision {
  PrecisionPlan plan;                 // equal to the old one when nothing changed
  FallbackState state;
  std::vector<std::string> reasons;   // one per raised layer: "conv3: fp16 -> fp32, 12 finite inputs overflowed at step 7"
};

// Pure. The culprit is the first cast of the step whose source was finite and whose result was not: what follows it
// (NaN in a norm, non-finite gradients) is consequence.
HPQF_API FallbackDecision react(const PrecisionPlan& plan, const FallbackState& state, const Observations& observations,
                                const FallbackRules& rules);

}  // namespace hpqf::plan
