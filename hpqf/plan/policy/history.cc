#include "hpqf/plan/policy/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

constexpr std::string_view kSchema = "hpqf.history";
constexpr double kLowest = std::numeric_limits<double>::lowest();

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json write(const PolicyChange& c) {
  return {{"layer", c.layer}, {"role", name(c.operand)}, {"from", c.from},    {"to", c.to},
          {"cause", c.cause}, {"numbers", c.numbers},    {"reason", c.reason}};
}

PolicyChange read_change(const Json& json, const std::string& place) {
  const JsonObject o(json, place);
  o.allow({"layer", "role", "from", "to", "cause", "numbers", "reason"});
  PolicyChange c{o.text("layer"), parse_operand(o.text("role"), place), o.text("from"), o.text("to"), "", {}, ""};
  if (o.has("cause")) c.cause = o.text("cause");
  if (o.has("reason")) c.reason = o.text("reason");
  if (o.has("numbers")) {
    const JsonObject numbers(o.object("numbers"), place + ", numbers");
    for (const auto& item : o.object("numbers").items())
      c.numbers[item.key()] = item.value().is_null() ? std::nan("") : numbers.number(item.key(), kLowest);
  }
  return c;
}

// NaN is null in JSON and equals nothing: text compares what was logged.
std::string text_of(const std::vector<PolicyChange>& changes) {
  Json list = Json::array();
  for (const PolicyChange& change : changes) list.push_back(write(change));
  return dump(list);
}

class Player {
 public:
  explicit Player(std::string_view where) : where_(where) {}

  void line(std::string_view text, int64_t number) {
    const std::string place = fmt::format("{}, line {}", where_, number);
    const Json json = parse_json(text, place);
    const JsonObject object(json, place);
    if (object.has("schema"))
      start(object, place);
    else if (!started_)
      throw Error(fmt::format("{}: a decision before the plan it was made on", place), "a first line with the schema",
                  "take a complete copy of the file");
    else
      decision(json, object, place, number);
  }

  Replay result;

 private:
  void start(const JsonObject& object, const std::string& place) {
    object.check_schema(kSchema, 1);
    object.allow({"schema", "version", "plan", "model", "layers", "policies"});
    result.plan = PrecisionPlan::from_json(dump(object.object("plan")), place);
    model_ = {object.text("model"), {}};
    for (const Json& item : object.array("layers")) {
      const JsonObject layer(item, place + ", layers");
      const auto kind = find_layer_kind(layer.text("kind"));
      if (!kind)
        throw Error(fmt::format("{}: kind \"{}\"", place, layer.text("kind")), "a layer kind", "take an intact copy");
      model_.layers.push_back({layer.text("name"), "", *kind, 0});
    }
    policies_.clear();
    for (const Json& item : object.array("policies")) {
      const JsonObject policy(item, place + ", policies");
      policies_[policy.text("name")] = policy_from_json(policy.text("name"), dump(policy.object("options")));
    }
    started_ = true;
  }

  PolicyInput read_input(const JsonObject& inputs, int64_t step) const {
    PolicyInput input;
    input.step = step;
    input.plan = result.plan;
    input.model = model_;
    if (inputs.has("loss")) input.loss = inputs.number("loss", kLowest);
    if (inputs.has("health")) input.health = health_from_json(dump(inputs.array("health")), inputs.place());
    if (inputs.has("sensitivity"))
      input.sensitivity = sensitivity_from_json(dump(inputs.object("sensitivity")), inputs.place());
    return input;
  }

  void decision(const Json& json, const JsonObject& object, const std::string& place, int64_t number) {
    object.allow({"step", "epoch", "policy", "inputs", "changes"});
    HistoryEntry entry;
    entry.line = number;
    Decided& d = entry.decided;
    d.step = object.integer("step", 0);
    d.epoch = object.integer("epoch", 0);
    d.policy = object.text("policy");
    for (const Json& change : object.array("changes")) d.changes.push_back(read_change(change, place));
    const JsonObject inputs(object.object("inputs"), place + ", inputs");
    inputs.allow({"state", "loss", "health", "sensitivity"});
    d.state = dump(inputs.object("state"));
    const PolicyInput input = read_input(inputs, d.step);

    std::vector<std::string> problems;
    const auto policy = policies_.find(d.policy);
    if (policy == policies_.end()) {
      problems.push_back("no such policy in the first line");
    } else if (policy->second) {
      entry.recomputed = true;
      const std::string again = text_of(policy->second->decide(input, d.state).changes), logged = text_of(d.changes);
      if (again != logged) problems.push_back(fmt::format("decided again: {}; the log says: {}", again, logged));
    }
    try {
      check(d.changes, result.plan, model_, d.policy);
      result.plan = apply_changes(result.plan, d.changes);
      if (result.plan.epoch() != d.epoch)
        problems.push_back(fmt::format("plan epoch {}, the log says {}", result.plan.epoch(), d.epoch));
    } catch (const Error& e) {
      problems.push_back(e.asked());
    }
    entry.wrong = !problems.empty();
    if (entry.wrong)
      entry.verdict = fmt::format("{}", fmt::join(problems, "; "));
    else if (!entry.recomputed)
      entry.verdict = "a user's policy: applied, not decided again";
    result.recomputed += entry.recomputed && !entry.wrong;
    result.only_applied += !entry.recomputed && !entry.wrong;
    result.wrong += entry.wrong;
    result.entries.push_back(std::move(entry));
  }

  std::string_view where_;
  bool started_ = false;
  ModelFacts model_;
  std::map<std::string, PolicyPtr> policies_;
};

}  // namespace

std::string history_start(const PrecisionPlan& plan, const ModelFacts& model, const std::vector<PolicyPtr>& policies) {
  Json json;
  json["schema"] = kSchema;
  json["version"] = 1;
  json["plan"] = parse_json(plan.to_json(), "plan");
  json["model"] = model.model;
  json["layers"] = Json::array();
  for (const LayerFacts& layer : model.layers)
    json["layers"].push_back({{"name", layer.name}, {"kind", name(layer.kind)}});
  json["policies"] = Json::array();
  for (const PolicyPtr& policy : policies)
    json["policies"].push_back({{"name", policy->name()}, {"options", parse_json(policy->options(), "options")}});
  return dump(json);
}

std::string history_line(const Decided& decided, const PolicyInput& input) {
  Json inputs;
  inputs["state"] = parse_json(decided.state, fmt::format("state of policy \"{}\"", decided.policy));
  if (std::isfinite(input.loss)) inputs["loss"] = input.loss;
  if (!input.health.empty()) inputs["health"] = parse_json(to_json(std::span(input.health)), "health");
  if (input.sensitivity) inputs["sensitivity"] = parse_json(to_json(*input.sensitivity), "sensitivity");
  Json json;
  json["step"] = decided.step;
  json["epoch"] = decided.epoch;
  json["policy"] = decided.policy;
  json["inputs"] = std::move(inputs);
  json["changes"] = Json::array();
  for (const PolicyChange& change : decided.changes) json["changes"].push_back(write(change));
  return dump(json);
}

Replay replay(std::string_view history, std::string_view where) {
  Player player(where);
  int64_t number = 0;
  for (size_t begin = 0; begin < history.size();) {
    const size_t end = history.find('\n', begin);
    if (end == std::string_view::npos) break;  // a line that was not finished
    number += 1;
    if (end > begin) player.line(history.substr(begin, end - begin), number);
    begin = end + 1;
  }
  if (number == 0)
    throw Error(fmt::format("{}: no complete line", where), "a history with its first line", "take a complete copy");
  return std::move(player.result);
}

std::string explain(const Replay& replay) {
  std::string text;
  for (const HistoryEntry& entry : replay.entries) {
    const Decided& d = entry.decided;
    text +=
        fmt::format("step {}, plan epoch {}, {}{}\n", d.step, d.epoch, d.policy,
                    entry.verdict.empty() ? "" : fmt::format(" ({}{})", entry.wrong ? "WRONG: " : "", entry.verdict));
    for (const PolicyChange& change : d.changes) text += "  " + to_string(change) + '\n';
  }
  return text;
}

}  // namespace hpqf::plan
