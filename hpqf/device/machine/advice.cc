#include "hpqf/device/machine/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hpqf::device::machine {

const char* to_string(Severity severity) {
  constexpr const char* kNames[] = {"note", "warning", "problem"};
  return kNames[static_cast<int>(severity)];
}

std::vector<Finding> advise(const MachineFacts& facts, const RunSetup& setup, const Calibration* calibration) {
  std::vector<Finding> findings;
  advise_cpu(facts, setup, findings);
  advise_memory(facts, setup, findings);
  advise_gpus(facts, setup, findings);
  advise_bus(facts, findings);
  if (calibration) advise_measured(*calibration, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

void advise_measured(const Calibration& calibration, std::vector<Finding>& findings) {
  if (!calibration.noise.reasons.empty()) {
    findings.push_back(
        {Severity::warning, "noisy-machine",
         fmt::format("the machine was not quiet while it was measured: {}", fmt::join(calibration.noise.reasons, "; ")),
         "the figures, and what auto chooses by them, may be off",
         "end other work on the machine and run hpqf doctor --again"});
  }
  // The fairest of the shapes: a format is slow only when it is slow at its best.
  std::map<std::string, double> best;
  for (const ProductFigure& p : calibration.products)
    if (p.left_out.empty()) best[p.format] = std::max(best[p.format], p.ratio.median);
  if (best.count("bf16") && best["bf16"] < 1)
    findings.push_back(
        {Severity::warning, "bf16-slow",
         fmt::format("torch's bf16 products take {:.1f} times as long as fp32's (measured)", 1 / best["bf16"]),
         "torch.autocast to bf16 makes training slower here; under HPQF's plans bf16 runs emulated",
         "use --precision auto, or int8 or int12 where the table shows a gain"});
  bool any_gain = false;
  for (const LayerFigure& l : calibration.layers) any_gain |= l.left_out.empty() && l.ratio >= kWorthwhile;
  if (!calibration.layers.empty() && !any_gain)
    findings.push_back({Severity::note, "nothing-pays",
                        "no low-precision format ran a linear layer at least 5 % faster than fp32 (measured)",
                        "low precision here shows its effect on accuracy, not its speed",
                        "train in fp32, or on another machine"});
}

}  // namespace hpqf::device::machine
