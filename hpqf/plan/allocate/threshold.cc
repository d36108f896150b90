#include "hpqf/plan/allocate/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "hpqf/base/error.h"

namespace hpqf::plan {
namespace {

std::optional<double> measure(const LayerSensitivity& layer, const ThresholdOptions& options, const BlockFormat& low) {
  if (options.measure == "eigenvalue")
    return layer.hessian ? std::optional(layer.hessian->top_eigenvalue) : std::nullopt;
  if (options.measure == "trace") return layer.hessian ? std::optional(layer.hessian->trace) : std::nullopt;
  const FormatScore* weight = find_score(layer, Operand::weight, low);
  if (options.measure == "omega") return weight ? weight->omega : std::nullopt;
  const FormatScore* input = find_score(layer, Operand::input, low);
  if (!weight && !input) return std::nullopt;
  return (weight ? weight->score : 0) + (input ? input->score : 0);
}

}  // namespace

std::map<std::string, double> sensitivity_map(const Sensitivity& sensitivity, const ThresholdOptions& options) {
  check(sensitivity);
  constexpr const char* kMeasures[] = {"score", "eigenvalue", "trace", "omega"};
  if (std::find(std::begin(kMeasures), std::end(kMeasures), options.measure) == std::end(kMeasures))
    throw Error(fmt::format("sensitivity by \"{}\"", options.measure), "score, eigenvalue, trace or omega",
                "name one of these");
  const BlockFormat low = uniform_precision(options.low).weight;
  std::map<std::string, double> map;
  double largest = 0;
  for (const LayerSensitivity& layer : sensitivity.layers) {
    const auto value = measure(layer, options, low);
    if (!value)
      throw Error(fmt::format("the {} of layer \"{}\" in {}", options.measure, layer.name, options.low),
                  "a record in which every layer has it", "measure it, or compare by another column");
    map[layer.name] = *value;
    if (std::isfinite(*value)) largest = std::max(largest, *value);
  }
  if (options.relative && largest > 0)
    for (auto& [layer, value] : map) value /= largest;
  return map;
}

PrecisionPlan allocate_precision(const Sensitivity& sensitivity, double threshold, const ThresholdOptions& options) {
  if (!(threshold >= 0)) throw Error(fmt::format("a threshold of {}", threshold), "0 or more", "use e.g. 0.1");
  const auto map = sensitivity_map(sensitivity, options);
  std::vector<Rule> rules;
  for (const LayerSensitivity& layer : sensitivity.layers) {
    const double value = map.at(layer.name);
    const bool high = value > threshold;
    const LayerPrecision format = uniform_precision(high ? options.high : options.low);
    LayerPrecision precision;
    precision.weight = format.weight;
    precision.input = format.input;
    precision.reason = fmt::format("{}{} {:.3g} {} {}", options.relative ? "relative " : "", options.measure, value,
                                   high ? ">" : "<=", threshold);
    rules.push_back({"=" + layer.name, precision});
  }
  LayerPrecision rest;
  rest.reason = "no sensitivity was measured";
  rules.push_back({"*", rest});
  return PrecisionPlan(std::move(rules));
}

}  // namespace hpqf::plan
