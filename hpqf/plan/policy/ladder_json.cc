#include <fmt/format.h>

#include <array>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"
#include "hpqf/plan/policy/ladder.h"

namespace hpqf::plan {
namespace {

constexpr double kLowest = std::numeric_limits<double>::lowest();
constexpr std::array kScopes = {"layer", "operand", "dgrad", "wgrad"};

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

[[noreturn]] void damaged(std::string asked, std::string allowed) {
  throw Error(std::move(asked), std::move(allowed), "take the record of an intact file");
}

std::string block_text(const Json& json, const std::string& place) {
  if (!json.is_string()) damaged(fmt::format("{}: {}", place, json.type_name()), "a format as text");
  return formats::to_string(formats::parse_block_format(json.get<std::string>()));
}

LadderTrack read_track(const JsonObject& object) {
  object.allow({"path", "now", "strikes", "calm_steps", "calm_needed", "since_change", "came_back"});
  LadderTrack track;
  for (const auto& item : object.object("path").items()) {
    std::vector<std::string>& path = track.path[parse_operand(item.key(), object.place())];
    if (!item.value().is_array() || item.value().empty())
      damaged(fmt::format("{}, path of {}", object.place(), item.key()), "a list of formats");
    for (const Json& format : item.value()) path.push_back(block_text(format, object.place()));
  }
  for (const auto& item : object.object("now").items())
    track.now[parse_operand(item.key(), object.place())] = block_text(item.value(), object.place());
  track.strikes = object.integer("strikes", 0);
  track.calm_steps = object.integer("calm_steps", 0);
  track.calm_needed = object.integer("calm_needed", 0);
  track.since_change = object.integer("since_change", 0);
  track.came_back = object.boolean("came_back");
  return track;
}

Json write(const Limit& limit) { return {{"soft", limit.soft}, {"hard", limit.hard}}; }

Limit read_limit(const JsonObject& rules, const char* key) {
  const JsonObject object(rules.object(key), fmt::format("{}, {}", rules.place(), key));
  object.allow({"soft", "hard"});
  return {object.number("soft", kLowest), object.number("hard", kLowest)};
}

}  // namespace

std::string to_json(const LadderState& state) {
  Json tracks = Json::object();
  for (const auto& [key, track] : state.tracks) {
    Json path = Json::object(), now = Json::object();
    for (const auto& [operand, formats] : track.path) path[name(operand)] = formats;
    for (const auto& [operand, format] : track.now) now[name(operand)] = format;
    tracks[key] = {{"path", path},
                   {"now", now},
                   {"strikes", track.strikes},
                   {"calm_steps", track.calm_steps},
                   {"calm_needed", track.calm_needed},
                   {"since_change", track.since_change},
                   {"came_back", track.came_back}};
  }
  return dump({{"tracks", tracks}});
}

LadderState ladder_state_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.allow({"tracks"});
  LadderState state;
  for (const auto& item : root.object("tracks").items())
    state.tracks[item.key()] = read_track({item.value(), fmt::format("{}, {}", where, item.key())});
  return state;
}

std::string to_json(std::span<const OperandHealth> health) {
  Json list = Json::array();
  for (const OperandHealth& h : health) {
    Json json = {{"layer", h.layer},         {"role", name(h.operand)},  {"elements", h.elements},
                 {"nonfinite", h.nonfinite}, {"saturated", h.saturated}, {"underflow", h.underflow}};
    // What is not finite would be null: it says "measured, and hopeless".
    if (h.sqnr_db) json["sqnr_db"] = *h.sqnr_db;
    if (h.drift) json["drift"] = *h.drift;
    list.push_back(std::move(json));
  }
  return dump(list);
}

std::vector<OperandHealth> health_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  if (!json.is_array()) damaged(fmt::format("{}: {}", where, json.type_name()), "a list of records");
  std::vector<OperandHealth> health;
  for (size_t i = 0; i < json.size(); ++i) {
    const JsonObject object(json[i], fmt::format("{}: record {}", where, i));
    object.allow({"layer", "role", "elements", "nonfinite", "saturated", "underflow", "sqnr_db", "drift"});
    OperandHealth h{object.text("layer"),
                    parse_operand(object.text("role"), object.place()),
                    object.integer("elements", 0),
                    object.integer("nonfinite", 0),
                    object.integer("saturated", 0),
                    object.integer("underflow", 0),
                    std::nullopt,
                    std::nullopt};
    auto optional = [&](const char* key) -> std::optional<double> {
      if (!object.has(key)) return std::nullopt;
      if (json[i][key].is_null()) return std::numeric_limits<double>::quiet_NaN();
      return object.number(key, kLowest);
    };
    h.sqnr_db = optional("sqnr_db");
    h.drift = optional("drift");
    health.push_back(std::move(h));
  }
  return health;
}

std::string to_json(const LadderRules& r) {
  return dump({{"enabled", r.enabled},
               {"scope", kScopes[static_cast<size_t>(r.scope)]},
               {"saturation", write(r.saturation)},
               {"underflow", write(r.underflow)},
               {"sqnr_db", write(r.sqnr_db)},
               {"drift", write(r.drift)},
               {"patience", r.patience},
               {"gradient_patience", r.gradient_patience},
               {"cool_down", r.cool_down},
               {"calm", r.calm},
               {"release", r.release},
               {"calm_most", r.calm_most},
               {"ladder", r.ladder}});
}

LadderRules ladder_rules_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject o(json, std::string(where));
  o.allow({"enabled", "scope", "saturation", "underflow", "sqnr_db", "drift", "patience", "gradient_patience",
           "cool_down", "calm", "release", "calm_most", "ladder"});
  LadderRules r;
  r.enabled = o.boolean("enabled");
  const auto scope = std::find(kScopes.begin(), kScopes.end(), o.text("scope"));
  if (scope == kScopes.end())
    damaged(fmt::format("{}: scope \"{}\"", where, o.text("scope")), "layer, operand, dgrad, wgrad");
  r.scope = static_cast<Scope>(scope - kScopes.begin());
  r.saturation = read_limit(o, "saturation");
  r.underflow = read_limit(o, "underflow");
  r.sqnr_db = read_limit(o, "sqnr_db");
  r.drift = read_limit(o, "drift");
  r.patience = o.integer("patience", 1);
  r.gradient_patience = o.integer("gradient_patience", 1);
  r.cool_down = o.integer("cool_down", 0);
  r.calm = o.integer("calm", 1);
  r.release = o.number("release", 0);
  r.calm_most = o.integer("calm_most", 1);
  r.ladder.clear();
  const JsonObject ladder(o.object("ladder"), fmt::format("{}, ladder", where));
  for (const auto& item : o.object("ladder").items()) r.ladder[item.key()] = ladder.text(item.key());
  check(r);
  return r;
}

}  // namespace hpqf::plan
