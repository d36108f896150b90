// What this process may use of the machine: control groups (v1 and v2), CPU affinity.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/file_tree.h"

namespace hpqf::device::machine {

struct LimitFacts {
  std::optional<double> cpu_quota;      // CPUs' worth of time per period; none: no limit
  std::optional<int64_t> memory_bytes;  // none: no limit
  std::string cpu_file, memory_file;    // which file said so
  std::vector<int> cpus, memory_nodes;  // that the scheduler may use for this process; empty: unknown
};

// The smallest limit of the process's control group and those above it. A process in a container often sees only the
// files of its own group, at the root of the mount: these are read too.
HPQF_API LimitFacts detect_limits(const FileTree& tree);

}  // namespace hpqf::device::machine
