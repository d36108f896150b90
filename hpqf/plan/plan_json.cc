// PrecisionPlan as JSON, schema "hpqf.plan".
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/plan/json.h"
#include "hpqf/plan/plan.h"

namespace hpqf::plan {
namespace {

constexpr std::string_view kSchema = "hpqf.plan";
constexpr int64_t kVersion = 1;

std::string formats_json(const LayerPrecision& precision) {
  std::string text;
  for (const RoleField& role : role_fields())
    text += fmt::format("\"{}\":\"{}\",", role.name, formats::to_string(precision.*role.field));
  return text + fmt::format("\"accumulate\":\"{}\",\"reason\":{}", formats::name(precision.accumulate),
                            json_quote(precision.reason));
}

// Runs `parse` on the text of a key; an Error of the format parser gets the place in front.
template <class Parse>
auto parse_at(const JsonObject& object, std::string_view key, Parse parse) {
  const std::string text = object.text(key);
  try {
    return parse(text);
  } catch (const Error& e) {
    throw Error(fmt::format("{}, key \"{}\": {}", object.place(), key, e.asked()), e.allowed(), e.todo());
  }
}

BlockFormat forward_format(const std::string& text) { return uniform_precision(text).weight; }
BlockFormat gradient_format(const std::string& text) { return uniform_precision(text).dgrad; }

LayerPrecision read_precision(const JsonObject& rule) {
  LayerPrecision precision;
  if (rule.has("precision"))
    precision = parse_at(rule, "precision", [](const std::string& text) { return uniform_precision(text); });
  if (rule.has("output_grad")) precision.dgrad = precision.wgrad = parse_at(rule, "output_grad", gradient_format);
  for (const RoleField& role : role_fields()) {
    if (!rule.has(role.name)) continue;
    const bool gradient = role.field == &LayerPrecision::dgrad || role.field == &LayerPrecision::wgrad;
    precision.*role.field = parse_at(rule, role.name, gradient ? gradient_format : forward_format);
  }
  if (rule.has("accumulate"))
    precision.accumulate =
        parse_at(rule, "accumulate", [](const std::string& text) { return formats::parse_format(text); });
  if (rule.has("reason")) precision.reason = rule.text("reason");
  check(precision, rule.place());
  return precision;
}

std::string element_place(std::string_view where, const char* what, size_t index, const Json& element,
                          const char* key) {
  std::string place = fmt::format("{}: {} {}", where, what, index);
  if (element.is_object() && element.contains(key) && element[key].is_string())
    place += fmt::format(" ({} \"{}\")", key, element[key].get<std::string>());
  return place;
}

Rule read_rule(const Json& json, std::string_view where, size_t index) {
  const JsonObject rule(json, element_place(where, "rule", index, json, "layers"));
  rule.allow({"layers", "precision", "weight", "input", "output_grad", "dgrad", "wgrad", "saved", "master", "state",
              "wire", "accumulate", "reason"});
  return {rule.text("layers"), read_precision(rule)};
}

LayerFacts read_layer(const Json& json, std::string_view where, size_t index) {
  const JsonObject layer(json, element_place(where, "layer", index, json, "name"));
  layer.allow({"name", "type", "kind", "parameters", "weight", "input", "dgrad", "wgrad", "saved", "master", "state",
               "wire", "accumulate", "reason"});
  LayerFacts facts;
  facts.name = layer.text("name");
  facts.type = layer.text("type");
  const std::string kind = layer.text("kind");
  const auto found = find_layer_kind(kind);
  if (!found)
    throw Error(
        fmt::format("{}, key \"kind\": \"{}\"", layer.place(), kind),
        "linear, conv, conv_transpose, rnn, embedding, attention, norm, softmax, loss, activation, position, other",
        "correct the kind, or remove \"layers\": it is only a copy for readers");
  facts.kind = *found;
  facts.parameters = layer.integer("parameters", 0);
  return facts;
}

JsonObject open(const Json& json, std::string_view where) {
  JsonObject root(json, std::string(where));
  root.check_schema(kSchema, kVersion);
  root.allow({"schema", "version", "epoch", "rules", "model", "layers"});
  return root;
}

ModelFacts read_model(const JsonObject& root, std::string_view where) {
  ModelFacts model;
  if (root.has("model")) model.model = root.text("model");
  if (!root.has("layers")) return model;
  const Json& layers = root.array("layers");
  for (size_t i = 0; i < layers.size(); ++i) model.layers.push_back(read_layer(layers[i], where, i));
  return model;
}

}  // namespace

// One rule or layer a line, so that line-based tools show what changed.
std::string PrecisionPlan::to_json(const ModelFacts* model) const {
  std::string text =
      fmt::format("{{\n\"schema\":\"{}\",\n\"version\":{},\n\"epoch\":{},\n\"rules\":[", kSchema, kVersion, epoch_);
  for (size_t i = 0; i < rules_.size(); ++i)
    text += fmt::format("{}\n {{\"layers\":{},{}}}", i ? "," : "", json_quote(rules_[i].layers),
                        formats_json(rules_[i].precision));
  text += "\n]";
  if (model) {
    text += fmt::format(",\n\"model\":{},\n\"layers\":[", json_quote(model->model));
    for (size_t i = 0; i < model->layers.size(); ++i) {
      const LayerFacts& layer = model->layers[i];
      text += fmt::format("{}\n {{\"name\":{},\"type\":{},\"kind\":\"{}\",\"parameters\":{},{}}}", i ? "," : "",
                          json_quote(layer.name), json_quote(layer.type), name(layer.kind), layer.parameters,
                          formats_json(at(layer.name, layer.kind)));
    }
    text += "\n]";
  }
  return text + "\n}\n";
}

PrecisionPlan PrecisionPlan::from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root = open(json, where);
  read_model(root, where);  // a damaged resolved table means that the file was damaged
  const Json& rules = root.array("rules");
  std::vector<Rule> read;
  for (size_t i = 0; i < rules.size(); ++i) read.push_back(read_rule(rules[i], where, i));
  try {
    PrecisionPlan plan(std::move(read));
    if (root.has("epoch")) plan.epoch_ = root.integer("epoch", 0);
    return plan;
  } catch (const Error& e) {
    if (e.asked().starts_with(where)) throw;
    throw Error(fmt::format("{}: {}", where, e.asked()), e.allowed(), e.todo());
  }
}

PrecisionPlan PrecisionPlan::load(const std::string& path) { return from_json(base::read_file(path), path); }

ModelFacts model_facts_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  return read_model(open(json, where), where);
}

}  // namespace hpqf::plan
