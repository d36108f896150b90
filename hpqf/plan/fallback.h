// Layer fallback: a layer whose format overflows leaves that format; the others stay.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
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
  int64_t clean_streak = 50;  // clean steps in a row that forget the counts. Under the loss scale's recovery interval
                              // (100 steps), so that its own probing upwards is never held against a layer.
  std::string to = "fp32";    // a layer that overflows in this format too goes to fp32
};

struct FallbackState {                               // goes into checkpoints
  std::map<std::string, int64_t> forward, gradient;  // skipped steps counted per layer since the last clean streak
  int64_t clean_steps = 0;                           // in a row, up to now; stays 0 while nothing is counted
  bool operator==(const FallbackState&) const = default;
};

struct FallbackDecision {
  PrecisionPlan plan;  // equal to the old one when nothing changed
  FallbackState state;
  std::vector<std::string>
      reasons;  // one per raised layer: "conv3: fp16 -> fp32, 12 finite inputs overflowed at step 7"
};

// Pure. The culprit is the first cast of a skipped step whose source was finite and whose result was not: what follows
// it (NaN in a norm, non-finite gradients) is consequence. Clipping formats (int8, fp8) give finite results and are
// never culprits. The raised layer alone gets a new rule ("=NAME"); its children and everything else keep theirs. Error
// on impossible rules.
HPQF_API FallbackDecision react(const PrecisionPlan& plan, const FallbackState& state, const Observations& observations,
                                const FallbackRules& rules);

HPQF_API void check(const FallbackRules& rules);

// Round trip is exact. Error with the place on anything else than such a record.
HPQF_API std::string to_json(const FallbackState& state);
HPQF_API FallbackState fallback_state_from_json(std::string_view text, std::string_view where = "fallback state");

}  // namespace hpqf::plan
