// Budgets as text, times and allocations as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/allocate.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

std::optional<double>* field(Budget& budget, std::string_view name) {
  if (name == "bits") return &budget.bits;
  if (name == "bytes") return &budget.bytes;
  if (name == "seconds" || name == "time") return &budget.seconds;
  if (name == "bops") return &budget.bops;
  return name == "loss" ? &budget.loss : nullptr;
}

double suffix(char c) {
  if (c == 'k') return 1e3;
  if (c == 'M') return 1e6;
  return c == 'G' ? 1e9 : 0;
}

[[noreturn]] void refuse(std::string_view text) {
  throw Error(fmt::format("a budget of \"{}\"", text),
              "NAME=NUMBER with bits, bytes, seconds, bops or loss, a k, M or G after the number for powers of 1000; "
              "several with commas, each once",
              "write e.g. bits=4.0 or bytes=60k,loss=0.02");
}

BlockFormat read_format(const JsonObject& object, const char* key) {
  try {
    return formats::parse_block_format(object.text(key));
  } catch (const Error& e) {
    throw Error(fmt::format("{}, key \"{}\": {}", object.place(), key, e.asked()), e.allowed(), e.todo());
  }
}

Json write(const std::vector<Amount>& amounts) {
  Json json = Json::object();
  for (const Amount& a : amounts) {
    json[a.kind] = {{"value", a.value}};
    if (std::isfinite(a.limit)) json[a.kind]["limit"] = a.limit;
  }
  return json;
}

Json plan_json(const PrecisionPlan& plan) { return parse_json(plan.to_json(), "plan"); }

}  // namespace

Budget parse_budget(std::string_view text) {
  Budget budget;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) refuse(text);
    std::optional<double>* value = field(budget, part.substr(0, equals));
    std::string_view number = part.substr(equals + 1);
    if (!value || *value || number.empty()) refuse(text);
    const double factor = suffix(number.back());
    if (factor > 0) number.remove_suffix(1);
    double read = 0;
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), read);
    if (code != std::errc() || end != number.data() + number.size()) refuse(text);
    *value = factor > 0 ? read * factor : read;
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  check(budget);
  return budget;
}

std::string to_string(const Budget& budget) {
  std::vector<std::string> parts;
  Budget copy = budget;
  for (const char* name : {"bits", "bytes", "seconds", "bops", "loss"})
    if (const auto& value = *field(copy, name)) parts.push_back(fmt::format("{}={}", name, *value));
  return fmt::format("{}", fmt::join(parts, ","));
}

Times times_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.check_schema("hpqf.times", 1);
  root.allow({"schema", "version", "layers", "conversions"});
  Times times;
  const Json& layers = root.array("layers");
  for (size_t i = 0; i < layers.size(); ++i) {
    const JsonObject object(layers[i], fmt::format("{}: layer {}", where, i));
    object.allow({"layer", "weight", "input", "dgrad", "wgrad", "seconds"});
    LayerTime t{object.text("layer"), read_format(object, "weight"), read_format(object, "input"), {}, {}, 0};
    if (object.has("dgrad")) t.dgrad = read_format(object, "dgrad");
    if (object.has("wgrad")) t.wgrad = read_format(object, "wgrad");
    t.seconds = object.number("seconds", 0);
    times.layers.push_back(std::move(t));
  }
  if (!root.has("conversions")) return times;
  const Json& conversions = root.array("conversions");
  for (size_t i = 0; i < conversions.size(); ++i) {
    const JsonObject object(conversions[i], fmt::format("{}: conversion {}", where, i));
    object.allow({"from", "to", "seconds_per_element"});
    times.conversions.push_back(
        {read_format(object, "from"), read_format(object, "to"), object.number("seconds_per_element", 0)});
  }
  return times;
}

std::string to_json(const Allocation& a) {
  Json json;
  json["schema"] = "hpqf.allocation";
  json["version"] = 1;
  json["loss"] = a.loss;
  json["loss_is"] = "modelled: predicted change of the loss in nats, standard errors included";
  json["bound"] = a.bound;
  json["exact"] = a.exact;
  json["method"] = a.method;
  json["amounts"] = write(a.amounts);
  json["candidates"] = Json::array();
  for (const Candidate& c : a.candidates)
    json["candidates"].push_back(
        {{"name", c.name}, {"loss", c.loss}, {"amounts", write(c.amounts)}, {"plan", plan_json(c.plan)}});
  if (!a.front.empty()) {
    Json points = Json::array();
    for (const AllocationPoint& p : a.front) {
      Json changes = Json::array();
      for (const Change& change : p.changes)
        changes.push_back({{"layer", change.layer}, {"role", change.role}, {"from", change.from}, {"to", change.to}});
      points.push_back({{"cost", p.cost}, {"loss", p.loss}, {"changes", changes}});
    }
    json["front"] = {{"cost", a.front_kind},
                     {"found", a.front_found},
                     {"exact", a.front_exact},
                     {"first", plan_json(a.front.front().plan)},
                     {"points", points}};
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpqf::plan
