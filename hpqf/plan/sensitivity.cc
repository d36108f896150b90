#include "hpqf/plan/sensitivity.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/plan/json.h"

namespace hpqf::plan {
namespace {

constexpr std::string_view kSchema = "hpqf.sensitivity";
constexpr int64_t kVersion = 1;
constexpr double kLowest = std::numeric_limits<double>::lowest();

[[noreturn]] void refuse(std::string asked, std::string allowed) {
  throw Error(std::move(asked), std::move(allowed), "measure the sensitivity again, or correct the record");
}

void check_score(const FormatScore& score, const LayerSensitivity& layer) {
  const std::string place =
      fmt::format("layer \"{}\", {} in {}", layer.name, name(score.operand), formats::to_string(score.format));
  formats::check(score.format);
  if (!(score.score >= 0))  // NaN too
    refuse(fmt::format("{}: score {}", place, score.score), "nats, 0 or more; infinity where the format fails");
  if (!(score.standard_error >= 0 && std::isfinite(score.standard_error)))
    refuse(fmt::format("{}: stderr {}", place, score.standard_error), "nats, finite, 0 or more");
  if (!std::isfinite(score.first_order) || !(score.first_order_stderr >= 0 && std::isfinite(score.first_order_stderr)))
    refuse(fmt::format("{}: first_order {} +- {}", place, score.first_order, score.first_order_stderr), "finite nats");
  if (score.terms < 0) refuse(fmt::format("{}: {} terms", place, score.terms), "0 or more");
  for (const std::optional<double>& extra : {score.omega, score.error, score.bias, score.loss_change})
    if (extra && !std::isfinite(*extra)) refuse(fmt::format("{}: a column of {}", place, *extra), "finite numbers");
}

void check_layer(const LayerSensitivity& layer) {
  if (layer.weights < 0 || layer.inputs < 0 || layer.macs < 0)
    refuse(fmt::format("layer \"{}\": {} weights, {} inputs, {} macs", layer.name, layer.weights, layer.inputs,
                       layer.macs),
           "counts of 0 or more");
  if (const auto& h = layer.hessian;
      h && !(std::isfinite(h->top_eigenvalue) && std::isfinite(h->trace) && std::isfinite(h->trace_stderr)))
    refuse(fmt::format("layer \"{}\": a Hessian that is not finite", layer.name), "finite numbers, or no Hessian");
  std::set<std::pair<Operand, std::string>> seen;
  for (const FormatScore& score : layer.scores) {
    check_score(score, layer);
    if (!seen.emplace(score.operand, formats::to_string(score.format)).second)
      refuse(fmt::format("layer \"{}\": {} in {} twice", layer.name, name(score.operand),
                         formats::to_string(score.format)),
             "each operand and format once");
  }
}

void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

Json write(const FormatScore& s) {
  Json json;
  json["role"] = name(s.operand);
  json["format"] = formats::to_string(s.format);
  json["score"] = std::isfinite(s.score) ? Json(s.score) : Json();
  json["stderr"] = s.standard_error;
  json["first_order"] = s.first_order;
  json["first_order_stderr"] = s.first_order_stderr;
  json["terms"] = s.terms;
  put(json, "omega", s.omega);
  put(json, "error", s.error);
  put(json, "bias", s.bias);
  put(json, "loss_change", s.loss_change);
  return json;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::optional<double> optional_number(const JsonObject& object, const char* key) {
  if (!object.has(key)) return std::nullopt;
  return object.number(key, kLowest);
}

FormatScore read_score(const Json& json, const std::string& place) {
  const JsonObject object(json, place);
  object.allow({"role", "format", "score", "stderr", "first_order", "first_order_stderr", "terms", "omega", "error",
                "bias", "loss_change"});
  FormatScore s;
  s.operand = parse_operand(object.text("role"), place);
  try {
    s.format = formats::parse_block_format(object.text("format"));
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", place, e.asked()), e.allowed(), e.todo());
  }
  s.score = json.contains("score") && json["score"].is_null() ? std::numeric_limits<double>::infinity()
                                                              : object.number("score", 0);
  s.standard_error = object.number("stderr", 0);
  if (object.has("first_order")) s.first_order = object.number("first_order", kLowest);
  if (object.has("first_order_stderr")) s.first_order_stderr = object.number("first_order_stderr", 0);
  if (object.has("terms")) s.terms = object.integer("terms", 0);
  s.omega = optional_number(object, "omega");
  s.error = optional_number(object, "error");
  s.bias = optional_number(object, "bias");
  s.loss_change = optional_number(object, "loss_change");
  return s;
}

Hessian read_hessian(const Json& json, const std::string& place) {
  const JsonObject object(json, place);
  object.allow({"top_eigenvalue", "trace", "trace_stderr", "probes"});
  return {object.number("top_eigenvalue", kLowest), object.number("trace", kLowest), object.number("trace_stderr", 0),
          object.has("probes") ? object.integer("probes", 0) : 0};
}

LayerSensitivity read_layer(const Json& json, std::string_view where, size_t index) {
  const JsonObject object(json, fmt::format("{}: layer {}", where, index));
  object.allow({"name", "kind", "weights", "inputs", "macs", "hessian", "scores"});
  LayerSensitivity layer;
  layer.name = object.text("name");
  const std::string place = fmt::format("{}: layer {} (\"{}\")", where, index, layer.name);
  if (object.has("kind")) {
    const auto kind = find_layer_kind(object.text("kind"));
    if (!kind) refuse(fmt::format("{}: kind \"{}\"", place, object.text("kind")), "a layer kind, e.g. linear or conv");
    layer.kind = *kind;
  }
  layer.weights = object.integer("weights", 0);
  if (object.has("inputs")) layer.inputs = object.integer("inputs", 0);
  if (object.has("macs")) layer.macs = object.integer("macs", 0);
  if (object.has("hessian")) layer.hessian = read_hessian(object.object("hessian"), place + ", hessian");
  const Json& scores = object.array("scores");
  for (size_t i = 0; i < scores.size(); ++i)
    layer.scores.push_back(read_score(scores[i], fmt::format("{}, score {}", place, i)));
  return layer;
}

std::vector<std::string> read_names(const Json& json, const std::string& place) {
  std::vector<std::string> names;
  if (!json.is_array()) refuse(fmt::format("{}: {}", place, json.type_name()), "a list of layer names");
  for (const Json& item : json) {
    if (!item.is_string()) refuse(fmt::format("{}: {} in a list of names", place, item.type_name()), "layer names");
    names.push_back(item.get<std::string>());
  }
  return names;
}

}  // namespace

const LayerSensitivity* find_layer(const Sensitivity& sensitivity, std::string_view wanted) {
  for (const LayerSensitivity& layer : sensitivity.layers)
    if (layer.name == wanted) return &layer;
  return nullptr;
}

const FormatScore* find_score(const LayerSensitivity& layer, Operand operand, const BlockFormat& format) {
  for (const FormatScore& score : layer.scores)
    if (score.operand == operand && score.format == format) return &score;
  return nullptr;
}

void check(const Sensitivity& sensitivity) {
  std::set<std::string> names, tied;
  for (const LayerSensitivity& layer : sensitivity.layers) {
    check_layer(layer);
    if (!names.insert(layer.name).second) refuse(fmt::format("layer \"{}\" twice", layer.name), "each layer once");
  }
  auto known = [&](const std::string& layer, const char* what) {
    if (!names.contains(layer)) refuse(fmt::format("{} of layer \"{}\"", what, layer), "layers of this record");
  };
  for (const auto& tie : sensitivity.ties)
    for (const std::string& layer : tie) {
      known(layer, "a tie");
      if (!tied.insert(layer).second)
        refuse(fmt::format("layer \"{}\" in two ties", layer), "each layer in one tie at most: join the two");
    }
  for (const auto& [from, to] : sensitivity.edges) {
    known(from, "an edge");
    known(to, "an edge");
  }
}

std::string to_json(const Sensitivity& sensitivity) {
  std::string text = fmt::format("{{\n\"schema\":\"{}\",\n\"version\":{},\n", kSchema, kVersion);
  text += fmt::format("\"model\":{},\n\"method\":{},\n\"labels\":{},\n\"samples\":{},\n\"seed\":{},\n\"layers\":[",
                      json_quote(sensitivity.model), json_quote(sensitivity.method), json_quote(sensitivity.labels),
                      sensitivity.samples, sensitivity.seed);
  const char* comma = "";
  for (const LayerSensitivity& layer : sensitivity.layers) {
    text += fmt::format("{}\n {{\"name\":{},\"kind\":\"{}\",\"weights\":{},\"inputs\":{},\"macs\":{},", comma,
                        json_quote(layer.name), name(layer.kind), layer.weights, layer.inputs, layer.macs);
    if (const auto& h = layer.hessian)
      text += fmt::format("\"hessian\":{},", dump({{"top_eigenvalue", h->top_eigenvalue},
                                                   {"trace", h->trace},
                                                   {"trace_stderr", h->trace_stderr},
                                                   {"probes", h->probes}}));
    text += "\"scores\":[";
    for (size_t i = 0; i < layer.scores.size(); ++i)
      text += fmt::format("{}\n  {}", i ? "," : "", dump(write(layer.scores[i])));
    text += "]}";
    comma = ",";
  }
  text += fmt::format("\n],\n\"ties\":{},\n\"edges\":{}\n}}\n", dump(Json(sensitivity.ties)),
                      dump(Json(sensitivity.edges)));
  return text;
}

Sensitivity sensitivity_from_json(std::string_view text, std::string_view where) {
  const Json json = parse_json(text, where);
  const JsonObject root(json, std::string(where));
  root.check_schema(kSchema, kVersion);
  root.allow({"schema", "version", "model", "method", "labels", "samples", "seed", "layers", "ties", "edges"});
  Sensitivity read;
  if (root.has("model")) read.model = root.text("model");
  if (root.has("method")) read.method = root.text("method");
  if (root.has("labels")) read.labels = root.text("labels");
  if (root.has("samples")) read.samples = root.integer("samples", 0);
  if (root.has("seed")) {
    if (!json["seed"].is_number_unsigned()) root.integer("seed", 0);  // its Error; 64 bits do not fit into int64_t
    read.seed = json["seed"].get<uint64_t>();
  }
  const Json& layers = root.array("layers");
  for (size_t i = 0; i < layers.size(); ++i) read.layers.push_back(read_layer(layers[i], where, i));
  if (root.has("ties"))
    for (const Json& tie : root.array("ties")) read.ties.push_back(read_names(tie, fmt::format("{}, ties", where)));
  if (root.has("edges"))
    for (const Json& edge : root.array("edges")) {
      const auto ends = read_names(edge, fmt::format("{}, edges", where));
      if (ends.size() != 2) refuse(fmt::format("{}: an edge of {} layers", where, ends.size()), "[producer, consumer]");
      read.edges.emplace_back(ends[0], ends[1]);
    }
  try {
    check(read);
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", where, e.asked()), e.allowed(), e.todo());
  }
  return read;
}

Sensitivity load_sensitivity(const std::string& path) { return sensitivity_from_json(base::read_file(path), path); }

}  // namespace hpqf::plan
