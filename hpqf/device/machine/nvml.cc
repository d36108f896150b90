// NVIDIA's management library. Its C interface is stable: names with a version suffix keep their meaning. Types and
// numbers below are those of nvml.h; nothing of CUDA is needed to build.
#include <fmt/format.h>

#include <array>

#include "hpqf/device/machine/gpu.h"
#include "hpqf/device/machine/shared_library.h"

namespace hpqf::device::machine {
namespace {

using Device = struct nvmlDevice_st*;
using Uint = unsigned int;
using Ulonglong = unsigned long long;  // NOLINT: the library's own type
constexpr int kSuccess = 0, kNoFunction = 13;
constexpr Uint kSmClock = 1, kMemoryClock = 2;
constexpr Uint kLinks = 36;  // NVML_NVLINK_MAX_LINKS of today's largest
constexpr int kToSwitch = 2;

struct PciInfo {
  char legacy_bus_id[16];
  Uint domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Memory {
  Ulonglong total, free, used;
};
struct Attributes {
  Uint multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  Ulonglong memory_mb;
};

class Nvml {
 public:
  explicit Nvml(const std::string& file) : library_(file) {}
  bool loaded() const { return library_.loaded(); }
  const std::string& error() const { return library_.error(); }

  template <typename... Args>
  int call(const char* name, Args... args) const {
    auto* function = library_.function<int(Args...)>(name);
    return function ? function(args...) : kNoFunction;
  }

  std::string why(int code) const {
    if (code == kNoFunction) return "this driver has no such function";
    auto* text = library_.function<const char*(int)>("nvmlErrorString");
    return text ? text(code) : fmt::format("error {}", code);
  }

  // One value through a pointer.
  template <typename T, typename... Args>
  std::optional<T> value(const char* name, Args... args) const {
    T out{};
    return call(name, args..., &out) == kSuccess ? std::optional(out) : std::nullopt;
  }

  template <typename... Args>
  std::string text(const char* name, Args... args) const {
    std::array<char, 97> buffer{};
    return call(name, args..., buffer.data(), Uint(buffer.size() - 1)) == kSuccess ? buffer.data() : "";
  }

 private:
  SharedLibrary library_;
};

std::optional<double> watts(const std::optional<Uint>& milliwatts) {
  return milliwatts ? std::optional(*milliwatts / 1000.0) : std::nullopt;
}

std::optional<int> whole(const std::optional<Uint>& value) {
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

// nvmlClocksEventReason*; an idle GPU and clocks that an application chose for itself are no trouble.
std::vector<std::string> slowed_by(Ulonglong bits) {
  std::vector<std::string> reasons;
  constexpr std::pair<Ulonglong, const char*> kReasons[] = {
      {0x2, "application clocks"},  {0x4, "power cap"},           {0x8, "slowdown (hardware)"},
      {0x20, "thermal (software)"}, {0x40, "thermal (hardware)"}, {0x80, "power brake (hardware)"}};
  for (const auto& [bit, name] : kReasons)
    if (bits & bit) reasons.emplace_back(name);
  return reasons;
}

const char* peer_text(int status) {
  switch (status) {
    case 0:
      return "ok";
    case 1:
      return "chipset does not support it";
    case 2:
      return "GPU does not support it";
    case 3:
      return "the GPUs hang on different I/O hubs";
    case 4:
      return "disabled in the driver";
    case 5:
      return "not supported";
    default:
      return "unknown";
  }
}

void read_power(const Nvml& nvml, Device device, GpuFacts& gpu) {
  gpu.power.limit_watts = watts(nvml.value<Uint>("nvmlDeviceGetPowerManagementLimit", device));
  gpu.power.default_watts = watts(nvml.value<Uint>("nvmlDeviceGetPowerManagementDefaultLimit", device));
  Uint least = 0, most = 0;
  if (nvml.call("nvmlDeviceGetPowerManagementLimitConstraints", device, &least, &most) == kSuccess) {
    gpu.power.least_watts = least / 1000.0;
    gpu.power.most_watts = most / 1000.0;
  }
  gpu.clocks = {whole(nvml.value<Uint>("nvmlDeviceGetClockInfo", device, kSmClock)),
                whole(nvml.value<Uint>("nvmlDeviceGetMaxClockInfo", device, kSmClock)),
                whole(nvml.value<Uint>("nvmlDeviceGetClockInfo", device, kMemoryClock)),
                whole(nvml.value<Uint>("nvmlDeviceGetMaxClockInfo", device, kMemoryClock))};
  gpu.slowed_by = slowed_by(nvml.value<Ulonglong>("nvmlDeviceGetCurrentClocksThrottleReasons", device).value_or(0));
}

void read_links(const Nvml& nvml, Device device, GpuFacts& gpu) {
  auto lanes = [&](const char* name) { return static_cast<int>(nvml.value<Uint>(name, device).value_or(0)); };
  gpu.pcie.width = lanes("nvmlDeviceGetCurrPcieLinkWidth");
  gpu.pcie.largest_width = lanes("nvmlDeviceGetMaxPcieLinkWidth");
  gpu.generation = lanes("nvmlDeviceGetCurrPcieLinkGeneration");
  gpu.largest_generation = lanes("nvmlDeviceGetMaxPcieLinkGeneration");
  for (Uint link = 0; link < kLinks; ++link) {
    const auto active = nvml.value<int>("nvmlDeviceGetNvLinkState", device, link);
    if (!active) continue;  // the GPU has no such link
    ++gpu.nvlink.present;
    if (*active == 0) continue;
    ++gpu.nvlink.active;
    if (!gpu.nvlink.version) gpu.nvlink.version = whole(nvml.value<Uint>("nvmlDeviceGetNvLinkVersion", device, link));
    gpu.nvlink.to_switch |= nvml.value<int>("nvmlDeviceGetNvLinkRemoteDeviceType", device, link) == kToSwitch;
  }
}

void read_partitions(const Nvml& nvml, Device device, GpuFacts& gpu) {
  Uint current = 0, pending = 0;
  if (nvml.call("nvmlDeviceGetMigMode", device, &current, &pending) != kSuccess) return;
  gpu.mig = current != 0;
  gpu.mig_after_reset = pending != 0;
  if (!*gpu.mig) return;
  const Uint most = nvml.value<Uint>("nvmlDeviceGetMaxMigDeviceCount", device).value_or(0);
  for (Uint i = 0; i < most; ++i) {
    const auto part = nvml.value<Device>("nvmlDeviceGetMigDeviceHandleByIndex", device, i);
    if (!part) continue;  // an unused place
    GpuPartition partition{nvml.text("nvmlDeviceGetName", *part), nvml.text("nvmlDeviceGetUUID", *part), {}, {}, {}};
    if (const auto a = nvml.value<Attributes>("nvmlDeviceGetAttributes_v2", *part)) {
      partition.memory_bytes = static_cast<int64_t>(a->memory_mb) * 1024 * 1024;
      partition.slices = static_cast<int>(a->compute_slices);
      partition.multiprocessors = static_cast<int>(a->multiprocessors);
    }
    gpu.partitions.push_back(std::move(partition));
  }
}

GpuFacts read_gpu(const Nvml& nvml, Device device, int index) {
  GpuFacts gpu;
  gpu.index = index;
  gpu.vendor = "NVIDIA";
  gpu.name = nvml.text("nvmlDeviceGetName", device);
  gpu.uuid = nvml.text("nvmlDeviceGetUUID", device);
  if (const auto pci = nvml.value<PciInfo>("nvmlDeviceGetPciInfo_v3", device)) {
    gpu.pci_address = pci->bus_id;
    // Device in the upper half, vendor in the lower.
    gpu.pci_id = fmt::format("{:04x}:{:04x}", pci->pci_device_id & 0xffff, pci->pci_device_id >> 16);
  }
  int major = 0, minor = 0;
  if (nvml.call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor) == kSuccess)
    gpu.architecture = fmt::format("cc {}.{}", major, minor);
  if (const auto memory = nvml.value<Memory>("nvmlDeviceGetMemoryInfo", device)) {
    gpu.memory_bytes = static_cast<int64_t>(memory->total);
    gpu.memory_used_bytes = static_cast<int64_t>(memory->used);
  }
  int ecc = 0, ecc_pending = 0;
  if (nvml.call("nvmlDeviceGetEccMode", device, &ecc, &ecc_pending) == kSuccess) gpu.ecc = ecc != 0;
  read_power(nvml, device, gpu);
  read_links(nvml, device, gpu);
  read_partitions(nvml, device, gpu);
  return gpu;
}

// Whether each GPU may read the memory of each other one.
void read_peers(const Nvml& nvml, const std::vector<Device>& devices, std::vector<GpuFacts>& gpus) {
  constexpr int kRead = 0;
  for (size_t a = 0; a < devices.size() && devices.size() > 1; ++a) {
    for (size_t b = 0; b < devices.size(); ++b) {
      const auto status = nvml.value<int>("nvmlDeviceGetP2PStatus", devices[a], devices[b], kRead);
      gpus[a].peers.emplace_back(a == b ? "" : status ? peer_text(*status) : "unknown");
    }
  }
}

class NvmlLibrary : public GpuLibrary {
 public:
  explicit NvmlLibrary(std::string file) : file_(std::move(file)) {}

  GpuReport read() const override {
    GpuReport report;
    report.library = "NVML";
    const Nvml nvml(file_);
    if (!nvml.loaded()) {
      report.missing = nvml.error();
      return report;
    }
    if (const int code = nvml.call("nvmlInit_v2"); code != kSuccess) {
      report.missing = "nvmlInit_v2: " + nvml.why(code);
      return report;
    }
    report.driver = nvml.text("nvmlSystemGetDriverVersion");
    const auto count = nvml.value<Uint>("nvmlDeviceGetCount_v2");
    if (!count) report.missing = "the number of GPUs cannot be read";
    if (count && *count == 0) report.missing = "the driver has no GPU";
    std::vector<Device> devices;
    for (Uint i = 0; i < count.value_or(0); ++i) {
      Device device = nullptr;
      // A GPU that another user owns, or that fell off the bus, is said and skipped.
      if (const int code = nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device); code != kSuccess) {
        report.notes.push_back(fmt::format("GPU {}: {}", i, nvml.why(code)));
        continue;
      }
      devices.push_back(device);
      report.gpus.push_back(read_gpu(nvml, device, static_cast<int>(i)));
    }
    read_peers(nvml, devices, report.gpus);
    nvml.call("nvmlShutdown");
    return report;
  }

 private:
  std::string file_;
};

}  // namespace

std::unique_ptr<GpuLibrary> nvml(std::string file) { return std::make_unique<NvmlLibrary>(std::move(file)); }

}  // namespace hpqf::device::machine
