// What the operating system says of this process and its machine: CPU time, memory, their limits, and energy. Linux.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

// One reading. Unset: this system does not say, or does not allow it.
struct HostReading {
  int64_t nanoseconds = 0;               // steady clock
  std::optional<double> cpu_seconds;     // user and system time of the process, all threads
  std::optional<double> resident_bytes;  // physical memory of the process
  std::optional<double> energy_joules;   // RAPL counters of all packages (and their memory), since an arbitrary origin
};

struct HostLimits {
  double cpus = 1;                     // what the process may use at once: cores, affinity, quota of its container
  std::string cpus_source;             // "4 cores", "container quota of 1.5 CPUs"
  std::optional<double> memory_bytes;  // the container's limit, or the machine's memory
  std::string memory_source;
};

// Reads below `root` (tests give a folder with files of their own making): proc/self, proc/meminfo, sys/fs/cgroup and
// sys/class/powercap. Never throws: what cannot be read is unset, with the reason in missing().
class HPQF_API HostProbe {
 public:
  explicit HostProbe(std::string root = "/");
  HostReading read();
  const HostLimits& limits() const { return limits_; }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct EnergyZone {
    std::string file;
    double range = 0;  // microjoules at which the counter starts again
    double last = 0, sum = 0;
  };
  void find_limits();
  void find_energy();

  std::string root_;
  HostLimits limits_;
  std::vector<EnergyZone> zones_;
  std::vector<std::string> missing_;
};

}  // namespace hpqf::observe
