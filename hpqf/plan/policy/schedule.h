// Precision over the course of a run: high formats until the loss has settled, and one format up near the end.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/policy/change.h"
#include "hpqf/plan/policy/rungs.h"

namespace hpqf::plan {

struct ScheduleRules {
  // Formats that come before the plan's own, highest first: {"fp32", "bf16"}. Each operand takes the better of the two.
  std::vector<std::string> start;
  int64_t window = 50;            // steps over which the variance of the loss is taken
  double tolerance = 0.5;         // settled: a variance not below this share of the window before's
  int64_t patience = 2;           // settled windows in a row before the next format
  double late = 0;                // last share of the steps, in which formats go one rung up; 0: never
  bool late_forward_only = true;  // weights and inputs alone: what the finished model computes with
  int64_t total_steps = 0;        // of the run; needed for `late`
  Rungs ladder = default_rungs();
};

struct ScheduleState {           // goes into checkpoints
  int64_t stage = 0;             // place in `start`; its size: the plan's own formats; one more: the late raise
  int64_t count = 0;             // losses in the present window
  double mean = 0, squares = 0;  // Welford's sums
  double variance = -1;          // of the window before; -1: none yet
  int64_t settled = 0;           // windows in a row
  bool operator==(const ScheduleState&) const = default;
};

struct ScheduleDecision {
  PrecisionPlan plan;
  ScheduleState state;
  std::vector<PolicyChange> changes;  // cause "schedule"
};

HPQF_API void check(const ScheduleRules& rules);

// The plan that `target` becomes in a stage.
HPQF_API PrecisionPlan staged(const PrecisionPlan& target, const ModelFacts& model, int64_t stage,
                              const ScheduleRules& rules);

// The plan to start with: staged(target, model, 0, rules).
// After each step, with its loss (a loss that is not finite is left out). Operands that something else changed since
// (a fallback, say) are left to it.
HPQF_API ScheduleDecision advance(const PrecisionPlan& plan, const PrecisionPlan& target, const ModelFacts& model,
                                  const ScheduleState& state, int64_t step, double loss, const ScheduleRules& rules);

HPQF_API std::string to_json(const ScheduleState& state);
HPQF_API ScheduleState schedule_state_from_json(std::string_view text, std::string_view where = "schedule state");
HPQF_API std::string to_json(const ScheduleRules& rules);
HPQF_API ScheduleRules schedule_rules_from_json(std::string_view text, std::string_view where = "schedule rules");

}  // namespace hpqf::plan
