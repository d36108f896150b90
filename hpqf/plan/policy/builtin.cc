// The policies of this room as Policy objects, with options as JSON.
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"
#include "hpqf/plan/policy/policy.h"

namespace hpqf::plan {
namespace {

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

class LadderPolicy : public Policy {
 public:
  explicit LadderPolicy(LadderRules rules) : rules_(std::move(rules)) { check(rules_); }
  std::string name() const override { return "ladder"; }
  std::string options() const override { return to_json(rules_); }
  std::string initial_state() const override { return to_json(LadderState{}); }
  PolicyDecision decide(const PolicyInput& input, const std::string& state) const override {
    LadderDecision d = react(input.plan, ladder_state_from_json(state), input.step, input.health, rules_);
    return {std::move(d.changes), to_json(d.state)};
  }

 private:
  LadderRules rules_;
};

class SchedulePolicy : public Policy {
 public:
  SchedulePolicy(PrecisionPlan target, ScheduleRules rules) : target_(std::move(target)), rules_(std::move(rules)) {
    check(rules_);
  }
  std::string name() const override { return "schedule"; }
  std::string options() const override {
    Json json;
    json["target"] = parse_json(target_.to_json(), "plan");
    json["rules"] = parse_json(to_json(rules_), "rules");
    return dump(json);
  }
  std::string initial_state() const override { return to_json(ScheduleState{}); }
  PolicyDecision decide(const PolicyInput& input, const std::string& state) const override {
    ScheduleDecision d =
        advance(input.plan, target_, input.model, schedule_state_from_json(state), input.step, input.loss, rules_);
    return {std::move(d.changes), to_json(d.state)};
  }

 private:
  PrecisionPlan target_;
  ScheduleRules rules_;
};

// State: the averaged sensitivity, null before the first.
class ReallocationPolicy : public Policy {
 public:
  explicit ReallocationPolicy(ReallocationRules rules) : rules_(std::move(rules)) {
    check(rules_.budget);
    if (rules_.budget.seconds)
      throw Error("reallocation with a budget of seconds", "bits, bytes, bops or loss",
                  "measured times are not part of the log: allocate once before the run");
    options_.standard_errors = rules_.standard_errors;
    options_.weight = rules_.weight;
    options_.input = rules_.input;
    options_.locks = rules_.locks;
  }
  std::string name() const override { return "reallocation"; }
  std::string options() const override;
  std::string initial_state() const override { return "{\"average\":null}"; }
  PolicyDecision decide(const PolicyInput& input, const std::string& state) const override {
    if (!input.sensitivity) return {{}, state};
    const Json json = parse_json(state, "reallocation state");
    const JsonObject object(json, "reallocation state");
    object.allow({"average"});
    Sensitivity mean = *input.sensitivity;
    if (!json["average"].is_null())
      mean = average(sensitivity_from_json(dump(object.object("average")), "reallocation state"), mean, rules_.decay);
    Json next;
    next["average"] = parse_json(to_json(mean), "sensitivity");
    Reallocation r = reallocate(input.plan, mean, rules_.budget, options_, rules_.switching);
    return {std::move(r.changes), dump(next)};
  }

 private:
  ReallocationRules rules_;
  AllocationOptions options_;
};

Json write(const std::vector<BlockFormat>& menu) {
  Json list = Json::array();
  for (const BlockFormat& format : menu) list.push_back(formats::to_string(format));
  return list;
}

std::vector<BlockFormat> read_menu(const Json& list, const std::string& place) {
  std::vector<BlockFormat> menu;
  for (const Json& format : list) {
    if (!format.is_string())
      throw Error(fmt::format("{}: {}", place, format.type_name()), "formats as text", "correct the menu");
    menu.push_back(formats::parse_block_format(format.get<std::string>()));
  }
  return menu;
}

std::string ReallocationPolicy::options() const {
  Json json;
  json["budget"] = to_string(rules_.budget);
  json["standard_errors"] = rules_.standard_errors;
  json["decay"] = rules_.decay;
  json["switching"] = {{"change", rules_.switching.change}, {"layer", rules_.switching.layer}};
  json["weight"] = write(rules_.weight);
  json["input"] = write(rules_.input);
  json["locks"] = Json::array();
  for (const Lock& lock : rules_.locks) {
    Json one = {{"layers", lock.layers}, {"reason", lock.reason}};
    for (Operand operand : kOperands) one[plan::name(operand)] = formats::to_string(format_of(lock.precision, operand));
    json["locks"].push_back(std::move(one));
  }
  return dump(json);
}

ReallocationRules read_rules(const Json& json, const std::string& place) {
  const JsonObject o(json, place);
  o.allow({"budget", "standard_errors", "decay", "switching", "weight", "input", "locks"});
  ReallocationRules rules;
  rules.budget = parse_budget(o.text("budget"));
  rules.standard_errors = o.number("standard_errors", 0);
  rules.decay = o.number("decay", 0);
  const JsonObject switching(o.object("switching"), place + ", switching");
  rules.switching = {switching.number("change", 0), switching.number("layer", 0)};
  rules.weight = read_menu(o.array("weight"), place + ", weight");
  rules.input = read_menu(o.array("input"), place + ", input");
  for (const Json& item : o.array("locks")) {
    const JsonObject one(item, place + ", locks");
    Lock lock;
    lock.layers = one.text("layers");
    lock.reason = one.text("reason");
    for (Operand operand : kOperands)
      format_of(lock.precision, operand) = formats::parse_block_format(one.text(name(operand)));
    rules.locks.push_back(std::move(lock));
  }
  return rules;
}

}  // namespace

PolicyPtr ladder_policy(LadderRules rules) { return std::make_shared<LadderPolicy>(std::move(rules)); }

PolicyPtr schedule_policy(PrecisionPlan target, ScheduleRules rules) {
  return std::make_shared<SchedulePolicy>(std::move(target), std::move(rules));
}

PolicyPtr reallocation_policy(ReallocationRules rules) {
  return std::make_shared<ReallocationPolicy>(std::move(rules));
}

PolicyPtr policy_from_json(std::string_view name, std::string_view options) {
  const std::string place = fmt::format("options of policy \"{}\"", name);
  if (name == "ladder") return ladder_policy(ladder_rules_from_json(options, place));
  if (name == "reallocation") return reallocation_policy(read_rules(parse_json(options, place), place));
  if (name != "schedule") return nullptr;
  const Json json = parse_json(options, place);
  const JsonObject o(json, place);
  o.allow({"target", "rules"});
  return schedule_policy(PrecisionPlan::from_json(dump(o.object("target")), place),
                         schedule_rules_from_json(dump(o.object("rules")), place));
}

}  // namespace hpqf::plan
