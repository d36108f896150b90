#include "hpqf/engine/auto_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpqf/engine/auto_choice.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

constexpr const char* kUnsettled = "auto: fp32 until the first step has shown what each layer computes";
std::string not_measured() {
  std::string text = "auto: fp32, for nothing else is measured for this kind of layer";
  for (Format f : {Format::int8, Format::int12, Format::bf16, Format::fp16})
    if (const std::string why = no_instructions(f); !why.empty())
      text += fmt::format("; {}: {}", formats::name(f), why);
  return text;
}

}  // namespace

PrecisionPlan auto_plan(const std::vector<std::string>& sensitive) {
  return PrecisionPlan::with_sensitive("fp32", sensitive, kUnsettled);
}

PrecisionPlan requested_plan(const std::string& precision, const std::vector<std::string>& sensitive) {
  return precision == "auto" ? auto_plan(sensitive) : PrecisionPlan::with_sensitive(precision, sensitive);
}

bool unsettled(const PrecisionPlan& plan) {
  return plan.epoch() == 0 && !plan.rules().empty() && plan.rules().back().precision.reason == kUnsettled;
}

std::string settle(Runtime& runtime, const plan::Sensitivity* sensitivity, double most_loss) {
  if (!unsettled(runtime.plan())) return "";
  const auto shapes = runtime.take_shapes();
  if (shapes.empty()) return "";
  std::vector<std::pair<std::string, const ProblemShape*>> seen;  // in the order of the model; the user's own left out
  double before = 0, after = 0;
  const plan::LayerFacts* first = nullptr;
  std::string last;
  for (const plan::LayerFacts& layer : runtime.facts().layers) {
    const auto shape = shapes.find(layer.name);
    if (shape == shapes.end()) continue;
    if (!first) first = &layer;
    last = layer.name;
    before += shape->second.flops;
    if (runtime.plan().at(layer.name, layer.kind).reason == kUnsettled) {
      seen.emplace_back(layer.name, &shape->second);
    } else {
      after += shape->second.flops;
    }
  }
  // Behind an embedding the first product no longer sees the data themselves.
  const auto& layers = runtime.facts().layers;
  const bool embedded = first && std::any_of(layers.begin(), layers.end(), [&](const plan::LayerFacts& layer) {
                          return &layer < first && layer.kind == plan::LayerKind::embedding;
                        });
  Allocated allocated;
  if (sensitivity) {
    allocated = allocate_by_loss(seen, *sensitivity, most_loss);
  } else {
    for (const auto& [layer, shape] : seen)
      allocated.choices.push_back(fastest(*shape, (layer == first->name && !embedded) || layer == last));
  }

  PrecisionPlan plan = runtime.plan().with_rule({"*", plan::uniform_precision("fp32", not_measured())});
  std::map<std::string, int> count;
  for (size_t i = seen.size(); i-- > 0;) {  // backwards, for each rule goes before those that are there
    const AutoChoice& chosen = allocated.choices[i];
    plan = plan.with_rule({"=" + seen[i].first, plan::uniform_precision(chosen.format, chosen.reason)});
    after += seen[i].second->flops / chosen.ratio;
    ++count[chosen.format];
  }
  for (const plan::Rule& rule : runtime.plan().rules())  // sensitive layers come first again
    if (rule.layers != "*") plan = plan.with_rule(rule);
  runtime.apply(plan);
  std::string text;
  for (const auto& [format, n] : count) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, format);
  text = fmt::format("auto: layers measured and chosen: {}; their products run {:.2f}x as fast as in fp32", text,
                     after > 0 ? before / after : 1);
  if (sensitivity)
    text += fmt::format("; predicted change of the loss {:.2g} nats, of at most {:.2g}", allocated.loss, most_loss);
  return text;
}

}  // namespace hpqf::engine
