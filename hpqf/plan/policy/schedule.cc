#include "hpqf/plan/policy/schedule.h"

#include <fmt/format.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

constexpr double kLowest = std::numeric_limits<double>::lowest();

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool forward(Operand operand) { return operand == Operand::weight || operand == Operand::input; }

LayerPrecision staged(LayerPrecision p, int64_t stage, const ScheduleRules& rules) {
  const auto count = static_cast<int64_t>(rules.start.size());
  if (stage == count) return p;
  for (Operand operand : kOperands) {
    BlockFormat& format = format_of(p, operand);
    if (stage < count) {
      const BlockFormat start = format_of(uniform_precision(rules.start[static_cast<size_t>(stage)]), operand);
      if (formats::info(start.format).bits > formats::info(format.format).bits) format = start;
    } else if (forward(operand) || !rules.late_forward_only) {
      if (const auto up = rung_above(rules.ladder, format)) format = *up;
    }
  }
  return p;
}

// Ends a window when it is full. True: the variance no longer falls.
bool add_loss(ScheduleState& state, double loss, const ScheduleRules& rules) {
  if (!std::isfinite(loss)) return false;
  state.count += 1;
  const double off = loss - state.mean;
  state.mean += off / static_cast<double>(state.count);
  state.squares += off * (loss - state.mean);
  if (state.count < rules.window) return false;
  const double variance = state.squares / static_cast<double>(state.count);
  const bool settled = state.variance >= 0 && variance >= rules.tolerance * state.variance;
  state.settled = settled ? state.settled + 1 : 0;
  state.variance = variance;
  state.count = 0;
  state.mean = state.squares = 0;
  return state.settled >= rules.patience;
}

}  // namespace

void check(const ScheduleRules& rules) {
  auto require = [](bool good, const char* name, double value, const char* allowed) {
    if (!good) throw Error(fmt::format("schedule: {} = {}", name, value), allowed, "correct the number");
  };
  for (const std::string& format : rules.start) uniform_precision(format);  // Error when it is none
  check(rules.ladder);
  require(rules.window >= 2, "window", static_cast<double>(rules.window), "2 steps or more");
  require(rules.tolerance > 0 && rules.tolerance <= 1, "tolerance", rules.tolerance, "above 0 and up to 1");
  require(rules.patience >= 1, "patience", static_cast<double>(rules.patience), "1 window or more");
  require(rules.late >= 0 && rules.late < 1, "late", rules.late, "0 up to, not including, 1");
  require(rules.late == 0 || rules.total_steps > 0, "total_steps", static_cast<double>(rules.total_steps),
          "the steps of the run, with a late raise");
}

PrecisionPlan staged(const PrecisionPlan& target, const ModelFacts& model, int64_t stage, const ScheduleRules& rules) {
  check(rules);
  std::vector<Rule> all;
  for (const LayerFacts& layer : model.layers) {
    LayerPrecision p = staged(target.at(layer.name, layer.kind), stage, rules);
    all.push_back({"=" + layer.name, p});
  }
  for (const Rule& rule : target.rules()) all.push_back(rule);
  return PrecisionPlan(std::move(all));
}

ScheduleDecision advance(const PrecisionPlan& plan, const PrecisionPlan& target, const ModelFacts& model,
                         const ScheduleState& state, int64_t step, double loss, const ScheduleRules& rules) {
  check(rules);
  ScheduleDecision d{plan, state, {}};
  const auto own = static_cast<int64_t>(rules.start.size()), late = own + 1;
  std::string why;
  const bool settled = add_loss(d.state, loss, rules);
  if (rules.late > 0 && d.state.stage < late &&
      static_cast<double>(step) >= (1 - rules.late) * static_cast<double>(rules.total_steps)) {
    d.state.stage = late;
    why = fmt::format("last {:.3g} of {} steps, at step {}", rules.late, rules.total_steps, step);
  } else if (settled && d.state.stage < own) {
    d.state.stage += 1;
    d.state.settled = 0;
    why = fmt::format("variance of the loss settled at {:.3g}, at step {}", d.state.variance, step);
  }
  if (d.state.stage == state.stage) return d;
  for (const LayerFacts& layer : model.layers) {
    const LayerPrecision wanted = target.at(layer.name, layer.kind), now = plan.at(layer.name, layer.kind);
    const LayerPrecision before = staged(wanted, state.stage, rules), after = staged(wanted, d.state.stage, rules);
    for (Operand operand : kOperands) {
      const BlockFormat &from = format_of(before, operand), &to = format_of(after, operand);
      if (from == to || !(format_of(now, operand) == from)) continue;
      d.changes.push_back({layer.name,
                           operand,
                           formats::to_string(from),
                           formats::to_string(to),
                           "schedule",
                           {{"stage", static_cast<double>(d.state.stage)}},
                           why});
    }
  }
  d.plan = apply_changes(plan, d.changes);
  return d;
}

std::string to_json(const ScheduleState& s) {
  return dump({{"stage", s.stage},
               {"count", s.count},
               {"mean", s.mean},
               {"squares", s.squares},
               {"variance", s.variance},
               {"settled", s.settled}});
}

ScheduleState schedule_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject o(json, std::string(where));
  o.allow({"stage", "count", "mean", "squares", "variance", "settled"});
  return {o.integer("stage", 0),  o.integer("count", 0),    o.number("mean", kLowest),
          o.number("squares", 0), o.number("variance", -1), o.integer("settled", 0)};
}

std::string to_json(const ScheduleRules& r) {
  return dump({{"start", r.start},
               {"window", r.window},
               {"tolerance", r.tolerance},
               {"patience", r.patience},
               {"late", r.late},
               {"late_forward_only", r.late_forward_only},
               {"total_steps", r.total_steps},
               {"ladder", r.ladder}});
}

ScheduleRules schedule_rules_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject o(json, std::string(where));
  o.allow({"start", "window", "tolerance", "patience", "late", "late_forward_only", "total_steps", "ladder"});
  ScheduleRules r;
  for (const Json& format : o.array("start")) {
    if (!format.is_string())
      throw Error(fmt::format("{}, start: {}", where, format.type_name()), "formats as text", "correct the list");
    r.start.push_back(format.get<std::string>());
  }
  r.window = o.integer("window", 2);
  r.tolerance = o.number("tolerance", 0);
  r.patience = o.integer("patience", 1);
  r.late = o.number("late", 0);
  r.late_forward_only = o.boolean("late_forward_only");
  r.total_steps = o.integer("total_steps", 0);
  r.ladder.clear();
  const JsonObject ladder(o.object("ladder"), fmt::format("{}, ladder", where));
  for (const auto& item : o.object("ladder").items()) r.ladder[item.key()] = ladder.text(item.key());
  check(r);
  return r;
}

}  // namespace hpqf::plan
