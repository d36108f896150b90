// GPUs as their vendor's management library reports them. A fact that the library did not give is absent, never a
// default.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/bus.h"

namespace hpqf::device::machine {

// A part of a GPU that the hardware keeps apart (NVIDIA MIG).
struct GpuPartition {
  std::string name;  // "NVIDIA A100-SXM4-40GB MIG 2g.10gb"
  std::string uuid;
  std::optional<int64_t> memory_bytes;
  std::optional<int> slices, multiprocessors;  // of the GPU's 7 compute slices
};

struct GpuPower {
  std::optional<double> limit_watts, default_watts, least_watts, most_watts;
};

struct GpuClocks {
  std::optional<int> sm_mhz, largest_sm_mhz, memory_mhz, largest_memory_mhz;
};

struct GpuLinks {  // NVLink
  int present = 0, active = 0;
  std::optional<int> version;
  bool to_switch = false;
};

struct GpuFacts {
  int index = 0;
  std::string vendor;  // "NVIDIA", "AMD"
  std::string name;    // market name as the library spells it
  std::string uuid;
  std::string pci_address;   // "00000000:1B:00.0"
  std::string pci_id;        // "10de:2330"
  std::string architecture;  // "cc 9.0" (CUDA compute capability); "" when unknown
  std::optional<int64_t> memory_bytes, memory_used_bytes;
  std::optional<bool> ecc;
  GpuPower power;
  GpuClocks clocks;
  std::vector<std::string>
      slowed_by;  // reasons for lower clocks at this moment: "power cap", "thermal (hardware)", ...
  std::optional<bool> mig, mig_after_reset;
  std::vector<GpuPartition> partitions;
  std::string partition_mode;  // AMD: "SPX/NPS1"; "" when there is none
  GpuLinks nvlink;
  PcieLink pcie;  // width alone: see `generation` for the speed
  int generation = 0, largest_generation = 0;
  std::vector<std::string> peers;  // by index of the other GPU: "ok", why there is no direct access, "" for itself
};

// What one library said. Without devices `missing` has the reason: no such library, no driver, no permission.
struct GpuReport {
  std::string library, driver;
  std::string missing;
  std::vector<GpuFacts> gpus;
  std::vector<std::string> notes;  // what could not be asked, and why
};

class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;
  virtual GpuReport read() const = 0;  // never throws for what the library lacks or refuses
};

// Loaded while read() runs. `file` is a name that the loader looks for, or a path.
HPQF_API std::unique_ptr<GpuLibrary> nvml(std::string file = "libnvidia-ml.so.1");
HPQF_API std::unique_ptr<GpuLibrary> rocm_smi(std::string file = "librocm_smi64.so");

}  // namespace hpqf::device::machine
