// What changes from one plan to another.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/plan/plan.h"

namespace hpqf::plan {
namespace {

void compare(std::string_view layer, const LayerPrecision& from, const LayerPrecision& to, PlanDiff& diff) {
  for (const RoleField& role : role_fields())
    if (!(from.*role.field == to.*role.field))
      diff.push_back({std::string(layer), role.name, formats::to_string(from.*role.field),
                      formats::to_string(to.*role.field), to.reason});
  if (from.accumulate != to.accumulate)
    diff.push_back({std::string(layer), name(Role::accumulate), formats::name(from.accumulate),
                    formats::name(to.accumulate), to.reason});
}

const Rule* find_rule(const std::vector<Rule>& rules, std::string_view pattern) {
  auto it = std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.layers == pattern; });
  return it == rules.end() ? nullptr : &*it;
}

// Plans without a model, e.g. two files written by hand.
PlanDiff diff_rules(const std::vector<Rule>& from, const std::vector<Rule>& to) {
  PlanDiff diff;
  for (const Rule& rule : from) {
    if (const Rule* other = find_rule(to, rule.layers))
      compare(rule.layers, rule.precision, other->precision, diff);
    else
      diff.push_back({rule.layers, "rule", "present", "absent", ""});
  }
  for (const Rule& rule : to)
    if (!find_rule(from, rule.layers))
      diff.push_back({rule.layers, "rule", "absent", "present", rule.precision.reason});
  return diff;
}

}  // namespace

PlanDiff PrecisionPlan::diff(const PrecisionPlan& other, const ModelFacts& model) const {
  if (model.layers.empty()) return diff_rules(rules_, other.rules_);
  PlanDiff diff;
  for (const LayerFacts& layer : model.layers)
    compare(layer.name, at(layer.name, layer.kind), other.at(layer.name, layer.kind), diff);
  return diff;
}

std::string to_string(const PlanDiff& diff) {
  std::string text;
  for (size_t i = 0; i < diff.size();) {
    // One line for all roles of a layer that change alike.
    std::string roles = diff[i].role;
    size_t end = i + 1;
    auto alike = [&](const Change& a, const Change& b) {
      return a.layer == b.layer && a.from == b.from && a.to == b.to && a.reason == b.reason;
    };
    for (; end < diff.size() && alike(diff[i], diff[end]); ++end) roles += ", " + diff[end].role;
    const Change& change = diff[i];
    text +=
        fmt::format("{}: {} {} -> {}", change.layer.empty() ? "(model)" : change.layer, roles, change.from, change.to);
    if (!change.reason.empty()) text += fmt::format(" ({})", change.reason);
    text += '\n';
    i = end;
  }
  return text;
}

}  // namespace hpqf::plan
