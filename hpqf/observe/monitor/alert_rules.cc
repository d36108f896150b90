#include "hpqf/observe/monitor/alert_rules.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;
using plan::JsonObject;

constexpr std::array kComparisons = {"above", "below", "nonfinite"};
constexpr std::array kActions = {"log", "warn", "stop", "callback"};

template <class Enum, size_t N>
Enum parse(const JsonObject& object, const char* key, const std::array<const char*, N>& names) {
  const std::string text = object.text(key);
  std::string allowed;
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
    allowed += fmt::format("{}{}", i ? ", " : "", names[i]);
  }
  throw Error(fmt::format("{}, key \"{}\": \"{}\"", object.place(), key, text), allowed, "use one of these");
}

bool is_beyond(const AlertRule& rule, double value) {
  switch (rule.comparison) {
    case Comparison::above:
      return value > rule.threshold;
    case Comparison::below:
      return value < rule.threshold;
    case Comparison::nonfinite:
      return !std::isfinite(value);
  }
  return false;
}

bool is_over(const AlertRule& rule, double value) {
  switch (rule.comparison) {
    case Comparison::above:
      return value <= rule.clear;
    case Comparison::below:
      return value >= rule.clear;
    case Comparison::nonfinite:
      return std::isfinite(value);
  }
  return true;
}

bool matches(const std::string& pattern, const std::string& metric) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == metric;
  const std::string_view head = std::string_view(pattern).substr(0, star),
                         tail = std::string_view(pattern).substr(star + 1);
  return metric.size() >= head.size() + tail.size() && metric.starts_with(head) && metric.ends_with(tail);
}

std::string text_of(const AlertRule& rule, const Metric& metric) {
  std::string text = rule.comparison == Comparison::nonfinite
                         ? fmt::format("{}: {} is {}", rule.rule, metric.name, metric.value)
                         : fmt::format("{}: {} is {:.4g}, {} {:.4g}", rule.rule, metric.name, metric.value,
                                       name(rule.comparison), rule.threshold);
  if (rule.samples > 1) text += fmt::format(" in {} rows one after another", rule.samples);
  if (!rule.advice.empty()) text += "; " + rule.advice;
  return text;
}

[[noreturn]] void refuse(const AlertRule& rule, const std::string& what, const char* allowed) {
  throw Error(fmt::format("alert rule '{}': {}", rule.rule, what), allowed, "correct the rule");
}

}  // namespace

const char* name(Comparison comparison) { return kComparisons[static_cast<size_t>(comparison)]; }
const char* name(AlertAction action) { return kActions[static_cast<size_t>(action)]; }

std::vector<AlertRule> default_alert_rules() {
  return {
      {"loss-nonfinite", "loss_metrics/global_avg_loss", Comparison::nonfinite, 0, 0, 5, 20, AlertAction::warn,
       "lower the learning rate, or keep the layer named in metrics.jsonl at fp32"},
      {"memory", "memory/rss(%)", Comparison::above, 95, 90, 3, 100, AlertAction::warn,
       "the process will be killed at the limit: use a smaller batch"},
      {"skipped", "precision/skipped_share", Comparison::above, 0.2, 0.05, 3, 50, AlertAction::warn,
       "the format's range is too small for these gradients: bf16, or fp32 for the layers named in metrics.jsonl"},
      {"loss-decay", "loss_metrics/decay", Comparison::above, 0.05, 0.02, 5, 50, AlertAction::warn,
       "the loss is above that of the reference run: keep sensitive layers at fp32"},
      {"saturation", "quant/sat_rate", Comparison::above, 0.01, 0.001, 3, 50, AlertAction::warn,
       "more than 1 % of the values are clipped: a scale per block, or a wider format"},
      {"exploding", "gradients/explosions", Comparison::above, 0, 0, 1, 20, AlertAction::warn,
       "clip the gradients or lower the learning rate; gradients.jsonl names the layer"},
      {"vanishing", "gradients/vanishings", Comparison::above, 0, 0, 1, 20, AlertAction::warn,
       "gradients.jsonl names the layer; a format with more range, or a loss scale, if the format caused it"},
  };
}

void check(const std::vector<AlertRule>& rules) {
  std::set<std::string> names;
  for (const AlertRule& rule : rules) {
    if (rule.rule.empty() || !names.insert(rule.rule).second)
      refuse(rule, "a name used twice, or none", "unique names");
    if (rule.metric.empty()) refuse(rule, "no metric", "the name of a metric of monitor.jsonl");
    if (!std::isfinite(rule.threshold) || !std::isfinite(rule.clear))
      refuse(rule, "a threshold that is not finite", "finite numbers");
    if (rule.samples < 1 || rule.cool_down < 0)
      refuse(rule, fmt::format("{} samples, cool-down {}", rule.samples, rule.cool_down), "1 or more, and 0 or more");
    if ((rule.comparison == Comparison::above && rule.clear > rule.threshold) ||
        (rule.comparison == Comparison::below && rule.clear < rule.threshold))
      refuse(rule, fmt::format("clear {} beyond the threshold {}", rule.clear, rule.threshold),
             "a value on the good side of the threshold, or the threshold itself");
  }
}

std::string to_json(const std::vector<AlertRule>& rules, int indent) {
  Json json{{"schema", "hpqf.alerts"}, {"version", 1}, {"rules", Json::array()}};
  for (const AlertRule& r : rules)
    json["rules"].push_back({{"rule", r.rule},
                             {"metric", r.metric},
                             {"comparison", name(r.comparison)},
                             {"threshold", r.threshold},
                             {"clear", r.clear},
                             {"samples", r.samples},
                             {"cool_down", r.cool_down},
                             {"action", name(r.action)},
                             {"advice", r.advice}});
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::vector<AlertRule> alert_rules_from_json(std::string_view text, std::string_view where) {
  const Json json = plan::parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.check_schema("hpqf.alerts", 1);
  root.allow({"schema", "version", "rules"});
  std::vector<AlertRule> rules;
  constexpr double kAny = -1e308;
  for (const Json& entry : root.array("rules")) {
    const JsonObject object(entry, fmt::format("{}: rule {}", where, rules.size()));
    object.allow({"rule", "metric", "comparison", "threshold", "clear", "samples", "cool_down", "action", "advice"});
    AlertRule rule;
    rule.rule = object.text("rule");
    rule.metric = object.text("metric");
    rule.comparison = parse<Comparison>(object, "comparison", kComparisons);
    if (rule.comparison != Comparison::nonfinite) rule.threshold = object.number("threshold", kAny);
    rule.clear = object.has("clear") ? object.number("clear", kAny) : rule.threshold;
    if (object.has("samples")) rule.samples = static_cast<int>(object.integer("samples", 1));
    if (object.has("cool_down")) rule.cool_down = static_cast<int>(object.integer("cool_down", 0));
    rule.action = parse<AlertAction>(object, "action", kActions);
    if (object.has("advice")) rule.advice = object.text("advice");
    rules.push_back(std::move(rule));
  }
  check(rules);
  return rules;
}

AlertDecision evaluate(const std::vector<AlertRule>& rules, AlertState state, const MonitorRow& row) {
  AlertDecision decision;
  for (const AlertRule& rule : rules) {
    for (const Metric& metric : row.metrics) {
      if (!matches(rule.metric, metric.name)) continue;
      AlertState::Track& track = state.tracks[rule.rule + ":" + metric.name];
      track.beyond = is_beyond(rule, metric.value) ? track.beyond + 1 : 0;
      if (track.raised) {
        ++track.since;
        if (track.since >= rule.cool_down && is_over(rule, metric.value)) track.raised = false;
        if (track.raised) continue;
      }
      if (track.beyond < rule.samples) continue;
      track = {0, true, 0};
      decision.alerts.push_back({rule.rule, metric.name, metric.value, rule.action, text_of(rule, metric)});
    }
  }
  decision.state = std::move(state);
  return decision;
}

}  // namespace hpqf::observe
