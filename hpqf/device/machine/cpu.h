// The CPU of a machine from its /proc and /sys: model, topology, caches, instruction sets, frequency.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/device.h"
#include "hpqf/device/machine/file_tree.h"

namespace hpqf::device::machine {

// Of logical CPU 0; on hybrid CPUs other cores may differ.
struct CpuCache {
  int level = 0;
  std::string type;  // "Data", "Instruction", "Unified"
  int64_t bytes = 0;
  int shared_by = 1;  // logical CPUs
};

// /sys/devices/system/cpu/cpu0/cpufreq. Virtual machines have none: `driver` is empty then.
struct CpuFrequency {
  std::string driver, governor;
  std::string preference;                      // energy_performance_preference, "" when there is none
  std::optional<double> largest_mhz, cap_mhz;  // what the CPU can do; scaling_max_freq
};

struct HPQF_API CpuFacts {
  std::string model;             // market name, "unknown CPU" when the system does not tell
  std::string architecture;      // "x86_64", "aarch64", "" for others
  bool virtual_machine = false;  // x86 only: the "hypervisor" flag
  int logical = 0;               // online CPUs
  int cores = 0, packages = 0, threads_per_core = 1;
  int largest_caches = 0;  // how many last-level caches (chiplets of an EPYC)
  std::vector<CpuCache> caches;
  CpuFeatures features;  // as the kernel lists them
  std::vector<std::string>
      further;  // matter here, but not in CpuFeatures: "bf16", "i8mm", "sve" of ARM, "avx_ne_convert"
  CpuFrequency frequency;
};

HPQF_API CpuFacts detect_cpu(const FileTree& tree);

// Kernel's names of features ("avx512_vnni", "asimddp") to ours.
HPQF_API CpuFeatures features_from_flags(const std::vector<std::string>& flags);

}  // namespace hpqf::device::machine
