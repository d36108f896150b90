// A policy as an object: what the trainer calls at a step boundary, and what users replace. Decisions are pure: the
// same input and state give the same changes, so that a log of inputs can be replayed.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/policy/ladder.h"
#include "hpqf/plan/policy/reallocate.h"
#include "hpqf/plan/policy/schedule.h"

namespace hpqf::plan {

// All that a policy may look at.
struct PolicyInput {
  int64_t step = 0;
  PrecisionPlan plan;
  ModelFacts model;
  double loss = std::numeric_limits<double>::quiet_NaN();
  std::vector<OperandHealth> health;
  std::optional<Sensitivity> sensitivity;  // when it was measured at this step
};

struct PolicyDecision {
  std::vector<PolicyChange> changes;  // none: the plan stays
  std::string state;                  // JSON, handed back at the next step and stored in checkpoints
};

class HPQF_API Policy {
 public:
  virtual ~Policy();
  virtual std::string name() const = 0;     // one word, unique among the policies of a run
  virtual std::string options() const = 0;  // JSON: what a replay needs to make the same policy again
  virtual std::string initial_state() const = 0;
  virtual PolicyDecision decide(const PolicyInput& input, const std::string& state) const = 0;
};
using PolicyPtr = std::shared_ptr<const Policy>;

// A user's policy without a class. A replay checks that its changes fit together, but cannot decide again.
using DecideFn = std::function<PolicyDecision(const PolicyInput&, const std::string& state)>;
HPQF_API PolicyPtr make_policy(std::string name, DecideFn decide, std::string initial_state = "{}");

// The policies of this room.
HPQF_API PolicyPtr ladder_policy(LadderRules rules);
HPQF_API PolicyPtr schedule_policy(PrecisionPlan target, ScheduleRules rules);
struct ReallocationRules {
  Budget budget;  // without seconds: measured times are not logged
  double standard_errors = 1, decay = 0.9;
  SwitchingCost switching;
  std::vector<BlockFormat> weight, input;  // menus
  std::vector<Lock> locks;
};
HPQF_API PolicyPtr reallocation_policy(ReallocationRules rules);
// By name ("ladder", "schedule", "reallocation") and options; nullptr for any other name. Error for damaged options.
HPQF_API PolicyPtr policy_from_json(std::string_view name, std::string_view options);

// Error naming the policy unless each change names a layer of the model (any layer when the model lists none) that may
// leave fp32, says what the plan says now, leads to formats that this version can train with, and comes once.
HPQF_API void check(const std::vector<PolicyChange>& changes, const PrecisionPlan& plan, const ModelFacts& model,
                    const std::string& policy);

struct Decided {                // one policy at one step, as it is logged
  int64_t step = 0, epoch = 0;  // of the plan after it
  std::string policy, state;    // before it
  std::vector<PolicyChange> changes;
};

// Several policies, in order, each on the plan that the one before left. Nothing changes when any of them returns
// something invalid or throws: plan and states are as before.
class HPQF_API PolicySet {
 public:
  explicit PolicySet(std::vector<PolicyPtr> policies);  // Error when two have one name

  struct Outcome {
    PrecisionPlan plan;
    std::vector<Decided> decisions;  // those that changed something
  };
  Outcome step(const PolicyInput& input);

  const std::vector<PolicyPtr>& policies() const { return policies_; }
  const std::map<std::string, std::string>& states() const { return states_; }  // by name, for checkpoints
  void restore(const std::map<std::string, std::string>& states);               // Error for a name it does not have

 private:
  std::vector<PolicyPtr> policies_;
  std::map<std::string, std::string> states_;
};

}  // namespace hpqf::plan
