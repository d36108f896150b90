// All that is known of a machine without running anything on it, and its recording.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/bus.h"
#include "hpqf/device/machine/cpu.h"
#include "hpqf/device/machine/file_tree.h"
#include "hpqf/device/machine/gpu.h"
#include "hpqf/device/machine/limits.h"
#include "hpqf/device/machine/memory.h"

namespace hpqf::device::machine {

struct HPQF_API MachineFacts {
  std::string kernel;  // release of the operating system's kernel
  CpuFacts cpu;
  MemoryFacts memory;
  LimitFacts limits;
  BusFacts bus;
  std::vector<GpuReport> gpus;  // one for each library that was asked

  int usable_cpus() const;  // that affinity and cpuset leave
  std::vector<const GpuFacts*> all_gpus() const;
};

// What is not there is left out; nothing fails.
HPQF_API MachineFacts detect(const FileTree& tree, std::vector<GpuReport> gpus);

HPQF_API std::vector<GpuReport> read_gpus();  // of this machine, through NVML and ROCm SMI

// The facts as JSON text, for reports.
HPQF_API std::string to_json(const MachineFacts& facts);

// A machine to be looked at elsewhere: the files that detect() read, and what the GPU libraries said. It has no host
// name, user name or serial number; unique ids of GPUs are cut to their first group. JSON, schema "hpqf.machine".
struct Recording {
  RecordedFiles files;
  std::vector<GpuReport> gpus;
};
HPQF_API Recording record(const FileTree& tree, std::vector<GpuReport> gpus);
HPQF_API std::string to_json(const Recording& recording);
// Error naming `where` when the text is truncated or is no recording.
HPQF_API Recording parse_recording(std::string_view text, const std::string& where);

}  // namespace hpqf::device::machine
