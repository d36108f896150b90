#include "hpqf/plan/policy/reallocate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/choices.h"

namespace hpqf::plan {
namespace {

double mixed(double old, double fresh, double decay) {
  if (!std::isfinite(fresh) || !std::isfinite(old)) return fresh;
  return decay * old + (1 - decay) * fresh;
}

std::optional<double> mixed(const std::optional<double>& old, const std::optional<double>& fresh, double decay) {
  if (!old || !fresh) return fresh ? fresh : old;
  return mixed(*old, *fresh, decay);
}

FormatScore mixed(const FormatScore& old, const FormatScore& fresh, double decay) {
  FormatScore s = fresh;
  auto error = [&](double a, double b) { return std::hypot(decay * a, (1 - decay) * b); };
  s.score = mixed(old.score, fresh.score, decay);
  if (std::isfinite(old.score) && std::isfinite(fresh.score))
    s.standard_error = error(old.standard_error, fresh.standard_error);
  s.first_order = mixed(old.first_order, fresh.first_order, decay);
  s.first_order_stderr = error(old.first_order_stderr, fresh.first_order_stderr);
  s.omega = mixed(old.omega, fresh.omega, decay);
  s.error = mixed(old.error, fresh.error, decay);
  s.bias = mixed(old.bias, fresh.bias, decay);
  s.loss_change = mixed(old.loss_change, fresh.loss_change, decay);
  return s;
}

// The picks that the plan amounts to; -1 where it has something that is no choice.
std::vector<int> picks_of(const PrecisionPlan& plan, const Sensitivity& scores, const knapsack::Choices& choices) {
  std::vector<int> picks;
  for (const knapsack::Slot& slot : choices.slots) {
    int pick = -1;
    for (size_t i = 0; i < slot.choices.size() && pick < 0; ++i) {
      const bool same = std::all_of(slot.layers.begin(), slot.layers.end(), [&](size_t layer) {
        const LayerPrecision now = plan.at(scores.layers[layer].name);
        return std::all_of(slot.operands.begin(), slot.operands.end(), [&](Operand operand) {
          return format_of(now, operand) == format_of(slot.choices[i], operand);
        });
      });
      if (same) pick = static_cast<int>(i);
    }
    picks.push_back(pick);
  }
  return picks;
}

}  // namespace

Sensitivity average(const Sensitivity& old, const Sensitivity& fresh, double decay) {
  if (!(decay >= 0 && decay < 1))
    throw Error(fmt::format("an average with decay {}", decay), "0 up to, not including, 1", "use e.g. 0.9");
  if (old.layers.size() != fresh.layers.size())
    throw Error(fmt::format("an average over {} and {} layers", old.layers.size(), fresh.layers.size()),
                "two records of one model", "start a new average");
  Sensitivity next = fresh;
  for (size_t i = 0; i < next.layers.size(); ++i) {
    const LayerSensitivity& before = old.layers[i];
    LayerSensitivity& layer = next.layers[i];
    if (before.name != layer.name)
      throw Error(fmt::format("an average of layer \"{}\" and layer \"{}\"", before.name, layer.name),
                  "two records of one model", "start a new average");
    for (FormatScore& score : layer.scores)
      if (const FormatScore* known = find_score(before, score.operand, score.format))
        score = mixed(*known, score, decay);
    for (const FormatScore& score : before.scores)
      if (!find_score(layer, score.operand, score.format)) layer.scores.push_back(score);
    if (!layer.hessian) layer.hessian = before.hessian;
  }
  return next;
}

Reallocation reallocate(const PrecisionPlan& plan, const Sensitivity& scores, const Budget& budget,
                        const AllocationOptions& options, const SwitchingCost& switching) {
  if (!(switching.change >= 0 && switching.layer >= 0))
    throw Error(fmt::format("switching costs of {} and {} nats", switching.change, switching.layer), "0 or more",
                "use 0 to follow every gain");
  const Allocation fresh = allocate(scores, budget, options);
  const knapsack::Choices choices = knapsack::build(scores, budget, options);
  const std::vector<int> now = picks_of(plan, scores, choices), then = picks_of(fresh.plan, scores, choices);

  Reallocation r{plan, {}, std::numeric_limits<double>::infinity(), switching.change, ""};
  std::string why = "formats outside the menu";
  if (std::find(now.begin(), now.end(), -1) == now.end()) {
    const Solution current = evaluate(choices.problem, now);
    const bool within = fits(choices.problem, current) && !(budget.loss && current.loss > *budget.loss);
    why = "a plan over the budget";
    if (within) {
      r.gain = current.loss - fresh.loss;
      why = fmt::format("predicted gain {:.3g} nats", r.gain);
    }
  }
  std::set<std::string> layers;
  for (size_t k = 0; k < then.size(); ++k) {
    if (now[k] == then[k]) continue;
    const knapsack::Slot& slot = choices.slots[k];
    for (size_t layer : slot.layers)
      for (Operand operand : slot.operands) {
        const std::string& name = scores.layers[layer].name;
        const std::string from = formats::to_string(format_of(plan.at(name), operand)),
                          to = formats::to_string(format_of(fresh.plan.at(name), operand));
        if (from == to) continue;
        layers.insert(name);
        r.changes.push_back({name, operand, from, to, "reallocation", {}, ""});
      }
  }
  r.cost += switching.layer * static_cast<double>(layers.size());
  r.reason = fmt::format("{}, switching {} layers costs {:.3g}", why, layers.size(), r.cost);
  if (r.changes.empty() || !(r.gain > r.cost)) {
    r.changes.clear();
    r.reason = "kept: " + r.reason;
    return r;
  }
  for (PolicyChange& change : r.changes) {
    change.reason = "reallocated: " + r.reason;
    change.numbers = {{"cost", r.cost}};
    if (std::isfinite(r.gain)) change.numbers["gain"] = r.gain;
  }
  r.plan = apply_changes(plan, r.changes);
  return r;
}

}  // namespace hpqf::plan
