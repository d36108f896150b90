#include "hpqf/plan/fallback.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

// Saturating formats clip: their results are finite, so they cannot be what made a step non-finite.
bool made_infinity(const CastObservation& cast) {
  return cast.nonfinite_in == 0 && cast.overflow > 0 &&
         !formats::info(formats::parse_block_format(cast.format).format).saturates;
}

const char* what(Role role) {
  if (role == Role::output_grad) return "output gradients";
  return role == Role::weight ? "weights" : "inputs";
}

// All operands of the layer in the culprit's format leave it, the others stay. `to` itself overflowing means fp32.
LayerPrecision raise(const LayerPrecision& now, Format culprit, const std::string& to, std::string_view reason) {
  LayerPrecision target = uniform_precision(to);
  if (target.input.format == culprit) target = LayerPrecision{};
  LayerPrecision raised = now;
  for (const RoleField& role : role_fields())
    if ((now.*role.field).format == culprit) raised.*role.field = target.*role.field;
  if (!raised.same_formats(now)) raised.reason = fmt::format("fallback: {}", reason);
  return raised;
}

}  // namespace

void check(const FallbackRules& rules) {
  const std::pair<const char*, int64_t> counts[] = {{"forward_overflows", rules.forward_overflows},
                                                    {"gradient_overflows", rules.gradient_overflows},
                                                    {"clean_streak", rules.clean_streak}};
  for (const auto& [name, value] : counts)
    if (value < 1)
      throw Error(fmt::format("fallback: {} = {}", name, value), "1 step or more",
                  "set a positive count, or enabled = false to switch the fallback off");
  uniform_precision(rules.to);  // Error when it is no format
}

FallbackDecision react(const PrecisionPlan& plan, const FallbackState& state, const Observations& observations,
                       const FallbackRules& rules) {
  check(rules);
  FallbackDecision decision{plan, state, {}};
  if (!rules.enabled) return decision;
  FallbackState& next = decision.state;

  if (!observations.skipped) {
    if (next.forward.empty() && next.gradient.empty()) return decision;
    if (++next.clean_steps >= rules.clean_streak) next = {};
    return decision;
  }
  next.clean_steps = 0;

  const auto culprit = std::find_if(observations.casts.begin(), observations.casts.end(), made_infinity);
  if (culprit == observations.casts.end()) return decision;
  const bool gradient = culprit->role == Role::output_grad;
  const int64_t seen = ++(gradient ? next.gradient : next.forward)[culprit->layer];
  if (seen < (gradient ? rules.gradient_overflows : rules.forward_overflows)) return decision;

  std::string reason =
      fmt::format("{} finite {} overflowed at step {}", culprit->overflow, what(culprit->role), observations.step);
  if (seen > 1) reason += fmt::format(", in skipped step {} of this kind", seen);
  const LayerPrecision now = plan.at(culprit->layer);
  const LayerPrecision raised = raise(now, formats::parse_block_format(culprit->format).format, rules.to, reason);
  if (raised == now) return decision;  // already raised: the cast belongs to a step under the plan before
  next.forward.erase(culprit->layer);
  next.gradient.erase(culprit->layer);
  decision.plan = plan.with_rule({"=" + culprit->layer, raised});
  decision.reasons.push_back(fmt::format("{}: {} -> {}, {}", culprit->layer.empty() ? "(model)" : culprit->layer,
                                         culprit->format, formats::to_string(gradient ? raised.wgrad : raised.input),
                                         reason));
  return decision;
}

std::string to_json(const FallbackState& state) {
  Json json;
  json["forward"] = state.forward;
  json["gradient"] = state.gradient;
  json["clean_steps"] = state.clean_steps;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

FallbackState fallback_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject object(json, std::string(where));
  object.allow({"forward", "gradient", "clean_steps"});
  auto counts = [&](const char* key) {
    std::map<std::string, int64_t> read;
    const JsonObject layers(object.object(key), fmt::format("{}, {}", where, key));
    for (const auto& item : object.object(key).items()) read[item.key()] = layers.integer(item.key(), 1);
    return read;
  };
  return {counts("forward"), counts("gradient"), object.integer("clean_steps", 0)};
}

}  // namespace hpqf::plan
