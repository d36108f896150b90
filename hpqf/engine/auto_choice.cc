#include "hpqf/engine/auto_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/device/device.h"
#include "hpqf/engine/rates.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/plan/allocate/allocate.h"

namespace hpqf::engine {
namespace {

constexpr Format kFormats[] = {Format::int8, Format::int12, Format::bf16, Format::fp16};

// Shapes are timed by class: the time of the layer itself grows with its rows.
double rows_over_class(const ProblemShape& shape) {
  return static_cast<double>(shape.a.front()) / static_cast<double>(shape_class(shape).a.front());
}

plan::LayerTime time_of(const std::string& layer, const TimedFormat& c) {
  return {layer, c.format, c.format, c.format, c.format, c.seconds};
}

}  // namespace

std::string no_instructions(Format f) {
  if (f != Format::int8 && f != Format::int12) return device::cpu_native(f).reason;
  return kernels::best_gemm_path() ? "" : "cpu has neither avx2 nor avx512_vnni";
}

std::vector<BlockFormat> auto_formats() {
  std::vector<BlockFormat> usable;
  for (const Format f : kFormats)
    if (no_instructions(f).empty()) usable.push_back(formats::default_block(f));
  return usable;
}

Candidates candidates(const ProblemShape& shape) {
  Candidates all;
  all.formats.push_back({});
  for (const Format f : kFormats) {
    std::string result = no_instructions(f);
    if (result.empty()) {
      const Rate r = rate(shape, formats::default_block(f));
      result = r.refused.empty() ? fmt::format("{:.2f}x the speed of fp32", r.ratio) : r.refused;
      if (r.refused.empty() && all.formats.front().seconds == 0)
        all.formats.front().seconds = r.seconds * r.ratio * rows_over_class(shape);
      if (r.refused.empty() && r.ratio >= device::kWorthwhile)
        all.formats.push_back({formats::default_block(f), r.ratio, r.seconds * rows_over_class(shape)});
    }
    all.tried += fmt::format("{}{}: {}", all.tried.empty() ? "" : "; ", formats::name(f), result);
  }
  return all;
}

AutoChoice fastest(const ProblemShape& shape, bool outermost) {
  const Candidates all = candidates(shape);
  AutoChoice best;
  for (const TimedFormat& c : all.formats) {
    if (outermost && formats::info(c.format.format).bits < 12) continue;
    if (c.ratio > best.ratio) best = {formats::name(c.format.format), c.ratio, ""};
  }
  best.reason =
      fmt::format("auto: {} on {} ({}{})", best.format == "fp32" ? "nothing faster" : "the fastest measured",
                  to_string(shape_class(shape)), all.tried, outermost ? "; first or last layer: at least 12 bits" : "");
  return best;
}

Allocated allocate_by_loss(const std::vector<std::pair<std::string, const ProblemShape*>>& seen,
                           const plan::Sensitivity& sensitivity, double most_loss) {
  Allocated out;
  std::vector<Candidates> all;
  plan::Sensitivity scored = sensitivity;
  scored.layers.clear();
  scored.edges.clear();
  plan::AllocationOptions options;
  options.minimise = "seconds";
  for (const auto& [layer, shape] : seen) {
    all.push_back(candidates(*shape));
    const plan::LayerSensitivity* scores = plan::find_layer(sensitivity, layer);
    if (!scores) continue;
    // The Fisher score is of the forward pass. Gradients round stochastically (int8, int12), or to bf16 or fp16: noise
    // that averages out over the steps and no bias to speak of (docs/sensitivity.md).
    scored.layers.push_back(*scores);
    for (const TimedFormat& c : all.back().formats)
      for (const plan::Operand gradient : {plan::Operand::dgrad, plan::Operand::wgrad})
        if (c.format.format != Format::fp32 && !plan::find_score(scored.layers.back(), gradient, c.format))
          scored.layers.back().scores.push_back({.operand = gradient, .format = c.format});
    for (const TimedFormat& c : all.back().formats) options.times.layers.push_back(time_of(layer, c));
  }
  std::erase_if(scored.ties, [&](const std::vector<std::string>& tie) {
    return std::any_of(tie.begin(), tie.end(), [&](const auto& name) { return !plan::find_layer(scored, name); });
  });
  PrecisionPlan plan;
  if (!scored.layers.empty()) {
    const plan::Allocation allocation = plan::allocate(scored, {.loss = most_loss}, options);
    plan = allocation.plan;
    out.loss = allocation.loss;
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto& [layer, shape] = seen[i];
    AutoChoice& choice = out.choices.emplace_back();
    const plan::LayerSensitivity* scores = plan::find_layer(scored, layer);
    std::string lost = "its sensitivity was not measured";
    if (scores) {
      const BlockFormat format = plan.at(layer).weight;
      for (const TimedFormat& c : all[i].formats)
        if (c.format == format) choice = {formats::name(format.format), c.ratio, ""};
      lost = "";
      for (const TimedFormat& c : all[i].formats) {
        if (c.format.format == Format::fp32) continue;
        const double sum = plan::solver_score(*scores, plan::Operand::weight, c.format, 1) +
                           plan::solver_score(*scores, plan::Operand::input, c.format, 1);
        lost += fmt::format("{}{} {:.2g}", lost.empty() ? "predicted change of the loss, nats: " : ", ",
                            formats::name(c.format.format), sum);
      }
    }
    choice.reason = fmt::format("auto: {} on {} ({}{}{})",
                                all[i].formats.size() < 2 ? "nothing faster"
                                : choice.format == "fp32" ? "faster formats would cost too much of the loss"
                                                          : "chosen by speed within the limit of the loss",
                                to_string(shape_class(*shape)), all[i].tried, lost.empty() ? "" : "; ", lost);
  }
  return out;
}

}  // namespace hpqf::engine
