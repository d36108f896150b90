#include "hpqf/plan/loss_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

void require(bool good, const char* what, double value, const char* allowed) {
  if (good) return;
  throw Error(fmt::format("loss scale: {} = {}", what, value), fmt::format("{} {}", what, allowed),
              fmt::format("correct {} in the loss scale options", what));
}

bool positive(double x) { return std::isfinite(x) && x > 0; }

LossScaleChange after_clean_step(LossScaleState state, const LossScaleOptions& options) {
  state.bad_steps = 0;
  ++state.clean_steps;
  if (!options.enabled) return {state, ""};
  const bool recovering = state.scale < state.best_scale;
  const int64_t interval = recovering ? options.recovery_interval : options.growth_interval;
  if (state.clean_steps < interval) return {state, ""};
  state.clean_steps = 0;
  if (!recovering) state.best_scale = std::max(state.best_scale, state.scale);
  const double grown = std::min(state.scale * options.growth, options.cap);
  if (grown == state.scale) return {state, ""};
  std::string reason = fmt::format("{} clean steps: {} -> {}{}", interval, state.scale, grown,
                                   recovering ? ", recovering towards a scale that worked" : "");
  state.scale = grown;
  return {state, std::move(reason)};
}

LossScaleChange after_bad_step(LossScaleState state, const LossScaleOptions& options) {
  // A remembered scale that fails within one recovery interval works no longer: without forgetting it, the short
  // interval would probe it for ever and lose `hysteresis` steps in each `recovery_interval`.
  const bool failed_at_once = state.bad_steps == 0 && state.clean_steps < options.recovery_interval;
  if (options.enabled && failed_at_once && state.scale <= state.best_scale)
    state.best_scale = std::max(state.scale * options.backoff, options.floor);
  state.clean_steps = 0;
  ++state.bad_steps;
  ++state.skipped_total;
  if (!options.enabled || state.bad_steps < options.hysteresis) return {state, ""};
  const double lower = std::max(state.scale * options.backoff, options.floor);
  if (lower == state.scale) return {state, ""};
  std::string reason = fmt::format("{} bad step{} in a row: {} -> {}", state.bad_steps, state.bad_steps == 1 ? "" : "s",
                                   state.scale, lower);
  state.scale = lower;
  return {state, std::move(reason)};
}

}  // namespace

void check(const LossScaleOptions& options) {
  require(positive(options.floor), "floor", options.floor, "> 0 and finite");
  require(positive(options.cap) && options.cap >= options.floor, "cap", options.cap, ">= floor and finite");
  require(options.init >= options.floor && options.init <= options.cap, "init", options.init, "from floor to cap");
  require(std::isfinite(options.growth) && options.growth >= 1, "growth", options.growth, ">= 1 and finite");
  require(options.backoff > 0 && options.backoff <= 1, "backoff", options.backoff, "> 0 and <= 1");
  require(options.growth_interval >= 1, "growth_interval", static_cast<double>(options.growth_interval), ">= 1 step");
  require(options.recovery_interval >= 1, "recovery_interval", static_cast<double>(options.recovery_interval),
          ">= 1 step");
  require(options.hysteresis >= 1, "hysteresis", options.hysteresis, ">= 1 step");
}

LossScaleState initial(const LossScaleOptions& options) {
  check(options);
  LossScaleState state;
  state.scale = options.enabled ? options.init : 1.0;
  return state;
}

LossScaleChange update(const LossScaleState& state, bool finite, const LossScaleOptions& options) {
  LossScaleChange change = finite ? after_clean_step(state, options) : after_bad_step(state, options);
  // A state restored under other options may lie outside their bounds.
  const double bounded = options.enabled ? std::clamp(change.state.scale, options.floor, options.cap) : 1.0;
  if (bounded != change.state.scale) {
    change.reason =
        fmt::format("{} -> {}: outside {}", change.state.scale, bounded,
                    options.enabled ? fmt::format("[{}, {}]", options.floor, options.cap) : "a disabled scale of 1");
    change.state.scale = bounded;
  }
  return change;
}

std::string to_json(const LossScaleState& state) {
  Json json;
  json["scale"] = state.scale;
  json["clean_steps"] = state.clean_steps;
  json["bad_steps"] = state.bad_steps;
  json["best_scale"] = state.best_scale;
  json["skipped_total"] = state.skipped_total;
  return json.dump();
}

LossScaleState loss_scale_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject object(json, std::string(where));
  object.allow({"scale", "clean_steps", "bad_steps", "best_scale", "skipped_total"});
  LossScaleState state;
  state.scale = object.number("scale", 0);
  if (state.scale == 0)
    throw Error(fmt::format("{}, key \"scale\": 0", where), "a positive scale",
                "take the record of an intact checkpoint");
  state.clean_steps = object.integer("clean_steps", 0);
  const int64_t bad_steps = object.integer("bad_steps", 0);
  if (bad_steps > INT32_MAX)
    throw Error(fmt::format("{}, key \"bad_steps\": {}", where, bad_steps), fmt::format("0 to {}", INT32_MAX),
                "take the record of an intact checkpoint");
  state.bad_steps = static_cast<int>(bad_steps);
  state.best_scale = object.number("best_scale", 0);
  state.skipped_total = object.integer("skipped_total", 0);
  return state;
}

}  // namespace hpqf::plan
