#include "hpqf/device/machine/verdict.h"

#include <fmt/format.h>

namespace hpqf::device::machine {
namespace {

Verdict measured(Verdict verdict, const std::vector<const LayerFigure*>& layers) {
  const LayerFigure *best = nullptr, *worst = nullptr;
  for (const LayerFigure* l : layers) {
    if (!best || l->ratio > best->ratio) best = l;
    if (!worst || l->ratio < worst->ratio) worst = l;
  }
  verdict.best_ratio = best->ratio;
  verdict.worth = best->ratio >= kWorthwhile      ? Worth::pays
                  : best->ratio > 1 / kWorthwhile ? Worth::even
                                                  : Worth::slower;
  const std::string range = best == worst ? fmt::format("{:.2f} times fp32's speed ({})", best->ratio, best->shape)
                                          : fmt::format("{:.2f} times fp32's speed ({}) to {:.2f} ({})", worst->ratio,
                                                        worst->shape, best->ratio, best->shape);
  verdict.text = "measured: " + range;
  if (verdict.worth == Worth::pays && worst->ratio < 1 / kWorthwhile)
    verdict.text += "; --precision auto keeps fp32 where it is faster";
  return verdict;
}

}  // namespace

const char* to_string(Worth worth) {
  constexpr const char* kNames[] = {"baseline", "pays", "even", "slower", "emulated", "unknown"};
  return kNames[static_cast<int>(worth)];
}

std::vector<Verdict> what_pays(const CpuFeatures& cpu, const Calibration* calibration) {
  std::vector<Verdict> verdicts;
  for (const formats::FormatInfo& info : formats::all_formats()) {
    Verdict verdict{std::string(info.name), Worth::unknown, 0, ""};
    std::vector<const LayerFigure*> timed;
    std::string refused;
    if (calibration)
      for (const LayerFigure& l : calibration->layers) {
        if (l.format != info.name) continue;
        if (l.left_out.empty())
          timed.push_back(&l);
        else
          refused = l.left_out;
      }
    const NativeAnswer native = cpu_native(info.format, cpu);
    if (info.format == Format::fp32) {
      verdict.worth = Worth::baseline;
      verdict.text = "what the others are compared with";
    } else if (!timed.empty()) {
      verdict = measured(std::move(verdict), timed);
      if (!calibration->noise.reasons.empty()) verdict.text += "; on a machine that was not quiet: not to be relied on";
    } else if (!refused.empty()) {
      verdict.worth = Worth::emulated;
      verdict.text = refused;
    } else if (!native.possible) {
      // On AVX2 an int8 plan runs with 7 bits on its unsigned side: not the format itself, but no emulation either.
      const bool narrowed = info.format == Format::int8 && cpu_native(Format::int7, cpu).possible;
      verdict.worth = narrowed ? Worth::unknown : Worth::emulated;
      verdict.text = narrowed ? "runs as int7 x int8; not measured" : native.reason;
    } else {
      verdict.text = "the CPU has the instructions; not measured";
    }
    verdicts.push_back(std::move(verdict));
  }
  return verdicts;
}

}  // namespace hpqf::device::machine
