// Threads, instruction sets, frequency.
#include <fmt/format.h>

#include <cmath>

#include "hpqf/device/machine/advice.h"

namespace hpqf::device::machine {
namespace {

void threads(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings) {
  const int usable = facts.usable_cpus();
  const auto& quota = facts.limits.cpu_quota;
  if (quota && *quota < setup.threads && *quota < usable) {
    const int fits = std::max(1, static_cast<int>(*quota));
    findings.push_back(
        {Severity::problem, "threads-over-quota",
         fmt::format("{} threads, but a quota of {:g} CPUs ({})", setup.threads, *quota, facts.limits.cpu_file),
         "when the quota of a period is used up all threads stop until the next one, and those that wait at "
         "barriers spend it for nothing",
         fmt::format("--threads {} (OMP_NUM_THREADS={} in Python), or raise the quota", fits, fits)});
  } else if (setup.threads > usable) {
    findings.push_back({Severity::problem, "threads-over-cpus",
                        fmt::format("{} threads on {} CPUs that this process may use", setup.threads, usable),
                        "threads that wait for a CPU hold up all others at every barrier",
                        fmt::format("--threads {}", usable)});
  }
  const int per_core = std::max(1, facts.cpu.threads_per_core);
  const int cores = std::max(1, usable / per_core);
  if (per_core > 1 && setup.threads > cores && setup.threads <= usable)
    findings.push_back({Severity::warning, "threads-on-siblings",
                        fmt::format("{} threads on {} physical cores", setup.threads, cores),
                        "two threads of one core share its multipliers: matrix products gain nothing from the second",
                        fmt::format("--threads {}", cores)});
}

void instructions(const MachineFacts& facts, std::vector<Finding>& findings) {
  const CpuFeatures& f = facts.cpu.features;
  if (facts.cpu.architecture == "x86_64") {
    if (!f.avx2)
      findings.push_back({Severity::problem, "no-avx2", "the CPU (or the hypervisor's CPU model) has no AVX2",
                          "no integer format runs natively: all low precision is emulated",
                          "on a virtual machine choose a CPU model that passes AVX2 on (-cpu host)"});
    else if (!f.avx512_vnni && !f.avx_vnni)
      findings.push_back({Severity::note, "no-vnni", "no VNNI: int8 runs on AVX2, its unsigned operand with 7 bits",
                          "the products are those of int7 x int8; the audit says so",
                          "int12 has the finer grid where 7 bits are too coarse"});
    if (!f.avx512_bf16 && !f.amx_bf16)
      findings.push_back({Severity::note, "no-bf16", "the CPU has neither avx512_bf16 nor amx_bf16",
                          "bf16 is emulated: its accuracy can be studied, it saves no time",
                          "for speed use --precision auto"});
  } else if (facts.cpu.architecture == "aarch64") {
    findings.push_back({Severity::note, "arm-emulated", "HPQF has no integer products for ARM yet",
                        "integer formats are emulated on this CPU",
                        "look at bf16 in the table, which torch runs itself"});
  }
}

void frequency(const MachineFacts& facts, std::vector<Finding>& findings) {
  const CpuFrequency& f = facts.cpu.frequency;
  // intel_pstate and amd-pstate-epp have a governor called powersave that does raise the clock under load.
  const bool hardware = f.driver == "intel_pstate" || f.driver == "amd-pstate-epp" || f.driver == "amd_pstate_epp";
  if (f.governor == "powersave" && !hardware)
    findings.push_back({Severity::warning, "governor-powersave",
                        fmt::format("frequency governor powersave (driver {})", f.driver),
                        "the CPU stays at its lowest clock also under load", "cpupower frequency-set -g performance"});
  if (f.preference == "power" || f.preference == "balance_power")
    findings.push_back({Severity::warning, "energy-preference",
                        fmt::format("energy preference {} (driver {})", f.preference, f.driver),
                        "the CPU raises its clock late and not to the top",
                        "cpupower set --epp performance (or balance_performance)"});
  if (f.largest_mhz && f.cap_mhz && *f.cap_mhz < 0.95 * *f.largest_mhz)
    findings.push_back({Severity::warning, "frequency-cap",
                        fmt::format("clock capped at {:.0f} MHz of {:.0f}", *f.cap_mhz, *f.largest_mhz),
                        "all arithmetic is slower by up to that ratio",
                        fmt::format("cpupower frequency-set -u {:.0f}MHz", *f.largest_mhz)});
}

}  // namespace

void advise_cpu(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings) {
  threads(facts, setup, findings);
  instructions(facts, findings);
  frequency(facts, findings);
}

}  // namespace hpqf::device::machine
