#include "hpqf/engine/auto_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpqf/device/device.h"
#include "hpqf/engine/rates.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::engine {
namespace {

constexpr const char* kUnsettled = "auto: fp32 until the first step has shown what each layer computes";
constexpr double kWorthIt = 1.05;  // below that a measurement is noise

constexpr Format kCandidates[] = {Format::int8, Format::int12, Format::bf16, Format::fp16};

// "" when this CPU has instructions for `f`.
std::string no_instructions(Format f) {
  if (f != Format::int8 && f != Format::int12) return device::cpu_native(f).reason;
  return kernels::best_gemm_path() ? "" : "cpu has neither avx2 nor avx512_vnni";
}

struct Chosen {
  std::string format = "fp32";
  double ratio = 1;
  std::string reason;
};

Chosen choose_format(const ProblemShape& shape, bool outermost) {
  Chosen best;
  std::string tried;
  for (Format f : kCandidates) {
    std::string result = no_instructions(f);
    if (result.empty() && outermost && f == Format::int8) result = "too few bits for the first or last layer";
    if (result.empty()) {
      const Rate r = rate(shape, formats::default_block(f));
      result = r.refused.empty() ? fmt::format("{:.2f}x the speed of fp32", r.ratio) : r.refused;
      if (r.ratio >= kWorthIt && r.ratio > best.ratio) best = {formats::name(f), r.ratio, ""};
    }
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", formats::name(f), result);
  }
  best.reason = fmt::format("auto: {} on {} ({})", best.format == "fp32" ? "nothing faster" : "the fastest measured",
                            to_string(shape_class(shape)), tried);
  return best;
}

std::string not_measured() {
  std::string text = "auto: fp32, for nothing else is measured for this kind of layer";
  for (Format f : kCandidates)
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

std::string settle(Runtime& runtime) {
  if (!unsettled(runtime.plan())) return "";
  const auto shapes = runtime.take_shapes();
  if (shapes.empty()) return "";
  std::vector<std::pair<const plan::LayerFacts*, const ProblemShape*>> seen;
  for (const plan::LayerFacts& layer : runtime.facts().layers)
    if (auto it = shapes.find(layer.name); it != shapes.end()) seen.emplace_back(&layer, &it->second);

  // Behind an embedding the first product no longer sees the data themselves.
  const auto& layers = runtime.facts().layers;
  const bool embedded = !seen.empty() && std::any_of(layers.begin(), layers.end(), [&](const plan::LayerFacts& layer) {
    return &layer < seen.front().first && layer.kind == plan::LayerKind::embedding;
  });
  PrecisionPlan plan = runtime.plan().with_rule({"*", plan::uniform_precision("fp32", not_measured())});
  std::map<std::string, int> count;
  double before = 0, after = 0;
  // Backwards, for each rule goes before those that are there.
  for (size_t i = seen.size(); i-- > 0;) {
    const auto& [layer, shape] = seen[i];
    before += shape->flops;
    if (runtime.plan().at(layer->name, layer->kind).reason != kUnsettled) {  // the user's own word
      after += shape->flops;
      continue;
    }
    const Chosen chosen = choose_format(*shape, (i == 0 && !embedded) || i + 1 == seen.size());
    plan = plan.with_rule({"=" + layer->name, plan::uniform_precision(chosen.format, chosen.reason)});
    after += shape->flops / chosen.ratio;
    ++count[chosen.format];
  }
  for (const plan::Rule& rule : runtime.plan().rules())  // sensitive layers come first again
    if (rule.layers != "*") plan = plan.with_rule(rule);
  runtime.apply(plan);
  std::string text;
  for (const auto& [format, n] : count) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, format);
  return fmt::format("auto: layers measured and chosen: {}; their products run {:.2f}x as fast as in fp32", text,
                     after > 0 ? before / after : 1);
}

}  // namespace hpqf::engine
