#include "hpqf/observe/monitor/gradient_observation.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

using plan::Json;
using plan::JsonObject;

constexpr std::array kNames = {"weight", "gradient", "output_grad", "input_grad"};
static_assert(kNames.size() == static_cast<size_t>(Subject::input_grad) + 1);

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::optional<double> if_finite(double value) {
  return std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

std::optional<double> optional_number(const JsonObject& object, const char* key, double least) {
  return object.has(key) ? std::optional<double>(object.number(key, least)) : std::nullopt;
}

}  // namespace

const char* name(Subject subject) { return kNames[static_cast<size_t>(subject)]; }

std::optional<Subject> find_subject(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Subject>(i);
  return std::nullopt;
}

void fill(GradientObservation& o, const kernels::TensorStats& s) {
  o.elements = s.count;
  o.nan = s.nan;
  o.infinite = s.infinite;
  o.norm = s.norm();
  o.max_abs = s.max_abs;
  o.mean = s.mean;
  o.deviation = std::sqrt(s.variance());
  o.kurtosis = if_finite(s.kurtosis());
  o.underflow = share(s.underflow, s.finite() - s.zero);
  o.overflow = share(s.overflow, s.finite());
}

void fill(GradientObservation& o, const kernels::QuantisationError& e, int64_t overflow) {
  const int64_t finite = o.elements - o.nan - o.infinite;
  o.sqnr_db = if_finite(e.sqnr_db());
  o.underflow = share(e.flushed, e.nonzero);
  o.overflow = share(overflow, finite);
}

std::string to_json_line(const GradientObservation& o) {
  Json json{{"step", o.step}, {"layer", o.layer}, {"subject", name(o.subject)}, {"format", o.format}};
  json["elements"] = o.elements;
  if (o.nan > 0) json["nan"] = o.nan;
  if (o.infinite > 0) json["infinite"] = o.infinite;
  json["norm"] = o.norm;
  json["max_abs"] = o.max_abs;
  json["mean"] = o.mean;
  json["deviation"] = o.deviation;
  if (o.kurtosis) json["kurtosis"] = *o.kurtosis;
  json["underflow"] = o.underflow;
  json["overflow"] = o.overflow;
  if (o.sqnr_db) json["sqnr_db"] = *o.sqnr_db;
  if (o.update_ratio && std::isfinite(*o.update_ratio)) json["update_ratio"] = *o.update_ratio;
  if (!o.time_norms.empty()) json["time_norms"] = o.time_norms;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

GradientObservation observation_from_json(std::string_view line, std::string_view where) {
  const Json json = plan::parse_json(line, where);
  const JsonObject object(json, std::string(where));
  object.allow({"step", "layer", "subject", "format", "elements", "nan", "infinite", "norm", "max_abs", "mean",
                "deviation", "kurtosis", "underflow", "overflow", "sqnr_db", "update_ratio", "time_norms"});
  GradientObservation o;
  o.step = object.integer("step", 0);
  o.layer = object.text("layer");
  const std::string subject = object.text("subject");
  const auto found = find_subject(subject);
  if (!found)
    throw Error(fmt::format("{}: subject \"{}\"", where, subject), "weight, gradient, output_grad, input_grad",
                "correct the subject");
  o.subject = *found;
  o.format = object.text("format");
  o.elements = object.integer("elements", 0);
  if (object.has("nan")) o.nan = object.integer("nan", 0);
  if (object.has("infinite")) o.infinite = object.integer("infinite", 0);
  constexpr double kAny = -1e308;
  o.norm = object.number("norm", 0);
  o.max_abs = object.number("max_abs", 0);
  o.mean = object.number("mean", kAny);
  o.deviation = object.number("deviation", 0);
  o.kurtosis = optional_number(object, "kurtosis", 0);
  o.underflow = object.number("underflow", 0);
  o.overflow = object.number("overflow", 0);
  o.sqnr_db = optional_number(object, "sqnr_db", kAny);
  o.update_ratio = optional_number(object, "update_ratio", 0);
  if (object.has("time_norms"))
    for (const Json& value : object.array("time_norms"))
      o.time_norms.push_back(value.is_number() ? value.get<double>() : 0);
  return o;
}

}  // namespace hpqf::observe
