#include "hpqf/plan/policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

class FunctionPolicy : public Policy {
 public:
  FunctionPolicy(std::string name, DecideFn decide, std::string state)
      : name_(std::move(name)), decide_(std::move(decide)), state_(std::move(state)) {}
  std::string name() const override { return name_; }
  std::string options() const override { return "{}"; }
  std::string initial_state() const override { return state_; }
  PolicyDecision decide(const PolicyInput& input, const std::string& state) const override {
    return decide_(input, state);
  }

 private:
  std::string name_;
  DecideFn decide_;
  std::string state_;
};

}  // namespace

Policy::~Policy() = default;

PolicyPtr make_policy(std::string name, DecideFn decide, std::string initial_state) {
  if (!decide) throw Error(fmt::format("policy \"{}\" without a function", name), "something to call", "pass it");
  return std::make_shared<FunctionPolicy>(std::move(name), std::move(decide), std::move(initial_state));
}

void check(const std::vector<PolicyChange>& changes, const PrecisionPlan& plan, const ModelFacts& model,
           const std::string& policy) {
  const std::string who = fmt::format("policy \"{}\"", policy);
  std::set<std::pair<std::string, Operand>> seen;
  for (const PolicyChange& change : changes) {
    const std::string what = fmt::format("{}: {}", who, to_string(change));
    const auto layer = std::find_if(model.layers.begin(), model.layers.end(),
                                    [&](const LayerFacts& facts) { return facts.name == change.layer; });
    if (layer == model.layers.end() && !model.layers.empty())
      throw Error(what, fmt::format("one of the {} layers of {}", model.layers.size(), model.model),
                  "correct the name of the layer");
    if (layer != model.layers.end() && !(plan.at(layer->name, layer->kind) == plan.at(layer->name)))
      throw Error(what, fmt::format("layers that may leave fp32; this is a {}", name(layer->kind)), "leave it out");
    if (!seen.emplace(change.layer, change.operand).second)
      throw Error(what + ", a second time", "one change for a layer and role", "return the last one only");
    LayerPrecision precision;
    try {
      format_of(precision, change.operand) = formats::parse_block_format(change.to);
    } catch (const Error& e) {
      throw Error(fmt::format("{}: {}", what, e.asked()), e.allowed(), e.todo());
    }
    check(precision, what);
  }
  try {
    apply_changes(plan, changes);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", who, e.asked()), e.allowed(), e.todo());
  }
}

PolicySet::PolicySet(std::vector<PolicyPtr> policies) : policies_(std::move(policies)) {
  for (const PolicyPtr& policy : policies_) {
    if (!policy) throw Error("a policy that is a null pointer", "objects", "leave it out");
    if (!states_.emplace(policy->name(), policy->initial_state()).second)
      throw Error(fmt::format("two policies \"{}\"", policy->name()), "each name once", "rename one");
  }
}

PolicySet::Outcome PolicySet::step(const PolicyInput& input) {
  std::map<std::string, std::string> next = states_;
  Outcome outcome{input.plan, {}};
  PolicyInput seen = input;
  for (const PolicyPtr& policy : policies_) {
    std::string& state = next[policy->name()];
    seen.plan = outcome.plan;
    PolicyDecision decision = policy->decide(seen, state);
    if (!decision.changes.empty()) {
      check(decision.changes, outcome.plan, input.model, policy->name());
      outcome.plan = apply_changes(outcome.plan, decision.changes);
      outcome.decisions.push_back(
          {input.step, outcome.plan.epoch(), policy->name(), state, std::move(decision.changes)});
    }
    state = std::move(decision.state);
  }
  states_ = std::move(next);
  return outcome;
}

void PolicySet::restore(const std::map<std::string, std::string>& states) {
  for (const auto& [name, state] : states)
    if (!states_.contains(name))
      throw Error(fmt::format("the state of a policy \"{}\"", name), "states of the policies of this run",
                  "restore a checkpoint of a run with the same policies");
  for (const auto& [name, state] : states) states_[name] = state;
}

}  // namespace hpqf::plan
