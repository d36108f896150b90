#include "hpqf/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/base/text.h"

namespace hpqf::plan {
namespace {

constexpr const char* kSensitiveReason = "sensitive: asked by the user";

bool stays_fp32(LayerKind kind) {
  return kind == LayerKind::norm || kind == LayerKind::softmax || kind == LayerKind::loss ||
         kind == LayerKind::activation || kind == LayerKind::position;
}

void check_rule(const Rule& rule, size_t index) {
  const std::string where = fmt::format("rule {} (layers \"{}\")", index, rule.layers);
  if (rule.layers.empty())
    throw Error(fmt::format("rule {} with an empty layer pattern", index),
                "a layer name, a pattern with * and ?, or \"=NAME\" for one layer alone",
                "write \"*\" for every layer, or \"=\" for the model itself");
  check(rule.precision, where);
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

// What of a pattern can resemble a name: "=head" and "head.*" were both meant to be "head".
std::string bare(std::string_view pattern) {
  std::string text;
  for (char c : pattern)
    if (c != '*' && c != '?' && c != '=') text += c;
  while (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

PrecisionPlan::PrecisionPlan() : rules_{{"*", LayerPrecision{}}} {}

PrecisionPlan::PrecisionPlan(std::vector<Rule> rules) : rules_(std::move(rules)) {
  for (size_t i = 0; i < rules_.size(); ++i) check_rule(rules_[i], i);
  if (rules_.empty() || rules_.back().layers != "*")
    throw Error(rules_.empty() ? std::string("a plan without rules")
                               : fmt::format("a plan whose last rule is for \"{}\"", rules_.back().layers),
                "a last rule for \"*\", so that every layer resolves",
                "add a rule with \"layers\": \"*\" at the end, e.g. at fp32");
}

PrecisionPlan PrecisionPlan::uniform(std::string_view format, std::string reason) {
  return PrecisionPlan({{"*", uniform_precision(format, std::move(reason))}});
}

PrecisionPlan PrecisionPlan::with_sensitive(std::string_view format, const std::vector<std::string>& sensitive,
                                            std::string reason) {
  std::vector<Rule> rules;
  for (const std::string& pattern : sensitive)
    rules.push_back({trimmed(pattern), uniform_precision("fp32", kSensitiveReason)});
  rules.push_back({"*", uniform_precision(format, std::move(reason))});
  return PrecisionPlan(std::move(rules));
}

LayerPrecision PrecisionPlan::at(std::string_view layer, LayerKind kind) const {
  if (stays_fp32(kind)) {
    LayerPrecision precision;
    precision.reason = fmt::format("rule: {} in fp32", name(kind));
    return precision;
  }
  for (const Rule& rule : rules_)
    if (matches(rule.layers, layer)) return rule.precision;
  return rules_.back().precision;  // "*": reached by no name, kept so that the function is total by construction
}

PrecisionPlan PrecisionPlan::with_rule(Rule rule) const {
  PrecisionPlan next;
  next.rules_ = {std::move(rule)};
  // A later rule with the same pattern could never win again; dropping it keeps the plan of a long run small.
  for (const Rule& old : rules_)
    if (old.layers != next.rules_.front().layers) next.rules_.push_back(old);
  if (next.rules_.front().layers == "*") next.rules_.resize(1);
  check_rule(next.rules_.front(), 0);
  next.epoch_ = epoch_ + 1;
  return next;
}

void PrecisionPlan::check(const ModelFacts& model) const {
  std::vector<std::string> names;
  for (const LayerFacts& layer : model.layers)
    if (!layer.name.empty()) names.push_back(layer.name);
  for (size_t i = 0; i < rules_.size(); ++i) {
    const std::string& pattern = rules_[i].layers;
    if (pattern == "*") continue;  // also right for a model without layers
    const bool used = std::any_of(model.layers.begin(), model.layers.end(),
                                  [&](const LayerFacts& layer) { return matches(pattern, layer.name); });
    if (used) continue;
    const auto near = base::nearest(names, bare(pattern), 3);
    throw Error(fmt::format("a plan rule for layers \"{}\", which match no layer of {}", pattern,
                            model.model.empty() ? "the model" : model.model),
                near.empty() ? std::string("the model has no named layers")
                             : fmt::format("one of {} layers; nearest names: {}", names.size(), fmt::join(near, ", ")),
                fmt::format("correct or remove rule {} (first rule is 0)", i));
  }
}

}  // namespace hpqf::plan
