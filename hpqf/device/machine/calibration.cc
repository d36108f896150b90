#include "hpqf/device/machine/calibration.h"

#include <fmt/format.h>

namespace hpqf::device::machine {

std::string CalibrationIdentity::difference(const CalibrationIdentity& other) const {
  if (cpu != other.cpu) return fmt::format("another CPU: {}", other.cpu);
  if (isa != other.isa) return fmt::format("other instruction sets: {}", other.isa);
  if (torch != other.torch) return fmt::format("another torch: {}", other.torch);
  if (threads != other.threads) return fmt::format("{} thread{}", other.threads, other.threads == 1 ? "" : "s");
  if (cpus != other.cpus) return fmt::format("{} usable CPUs", other.cpus);
  if (quota != other.quota) return other.quota > 0 ? fmt::format("a quota of {:g} CPUs", other.quota) : "no CPU quota";
  return "";
}

std::vector<std::string> noise_reasons(const Noise& noise) {
  std::vector<std::string> reasons;
  if (noise.spread > 0.10)
    reasons.push_back(fmt::format("equal products differ by {:.0f} % (interquartile range)", 100 * noise.spread));
  if (noise.stolen > 0.02)
    reasons.push_back(fmt::format("the hypervisor took {:.0f} % of the CPU time", 100 * noise.stolen));
  if (noise.throttled > 0.02)
    reasons.push_back(fmt::format("the CPU quota ran out in {:.0f} % of the periods", 100 * noise.throttled));
  if (noise.others > 0.5)
    reasons.push_back(fmt::format("{:.1f} other tasks ran per CPU before the start", noise.others));
  return reasons;
}

}  // namespace hpqf::device::machine
