// AMD's management library, by the types and numbers of rocm_smi.h.
#include <fmt/format.h>

#include <array>

#include "hpqf/device/machine/gpu.h"
#include "hpqf/device/machine/shared_library.h"

namespace hpqf::device::machine {
namespace {

constexpr int kSuccess = 0, kNoFunction = -1;
constexpr int kVram = 0, kDriver = 0;

class Rsmi {
 public:
  explicit Rsmi(const std::string& file) : library_(file) {}
  bool loaded() const { return library_.loaded(); }
  const std::string& error() const { return library_.error(); }

  template <typename... Args>
  int call(const char* name, Args... args) const {
    auto* function = library_.function<int(Args...)>(name);
    return function ? function(args...) : kNoFunction;
  }

  template <typename T, typename... Args>
  std::optional<T> value(const char* name, Args... args) const {
    T out{};
    return call(name, args..., &out) == kSuccess ? std::optional(out) : std::nullopt;
  }

  template <typename Length, typename... Args>
  std::string text(const char* name, Args... args) const {
    std::array<char, 257> buffer{};
    return call(name, args..., buffer.data(), Length(buffer.size() - 1)) == kSuccess ? buffer.data() : "";
  }

 private:
  SharedLibrary library_;
};

std::optional<double> watts(const std::optional<uint64_t>& microwatts) {
  return microwatts ? std::optional(static_cast<double>(*microwatts) * 1e-6) : std::nullopt;
}

std::optional<int64_t> bytes(const std::optional<uint64_t>& value) {
  return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
}

GpuFacts read_gpu(const Rsmi& rsmi, uint32_t index) {
  GpuFacts gpu;
  gpu.index = static_cast<int>(index);
  gpu.vendor = "AMD";
  gpu.name = rsmi.text<size_t>("rsmi_dev_name_get", index);
  if (const auto id = rsmi.value<uint64_t>("rsmi_dev_unique_id_get", index)) gpu.uuid = fmt::format("{:016x}", *id);
  // Domain in the upper half, bus in bits 8 to 15, device in 3 to 7, function in 0 to 2.
  if (const auto at = rsmi.value<uint64_t>("rsmi_dev_pci_id_get", index))
    gpu.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{}", *at >> 32, *at >> 8 & 0xff, *at >> 3 & 0x1f, *at & 7);
  if (const auto id = rsmi.value<uint16_t>("rsmi_dev_id_get", index)) gpu.pci_id = fmt::format("1002:{:04x}", *id);
  gpu.memory_bytes = bytes(rsmi.value<uint64_t>("rsmi_dev_memory_total_get", index, kVram));
  gpu.memory_used_bytes = bytes(rsmi.value<uint64_t>("rsmi_dev_memory_usage_get", index, kVram));
  gpu.power.limit_watts = watts(rsmi.value<uint64_t>("rsmi_dev_power_cap_get", index, uint32_t{0}));
  gpu.power.default_watts = watts(rsmi.value<uint64_t>("rsmi_dev_power_cap_default_get", index));
  uint64_t most = 0, least = 0;
  if (rsmi.call("rsmi_dev_power_cap_range_get", index, uint32_t{0}, &most, &least) == kSuccess) {
    gpu.power.most_watts = watts(most);
    gpu.power.least_watts = watts(least);
  }
  gpu.partition_mode = rsmi.text<uint32_t>("rsmi_dev_compute_partition_get", index);
  const std::string memory_mode = rsmi.text<uint32_t>("rsmi_dev_memory_partition_get", index);
  if (!memory_mode.empty()) gpu.partition_mode = fmt::format("{}/{}", gpu.partition_mode, memory_mode);
  return gpu;
}

class RocmSmi : public GpuLibrary {
 public:
  explicit RocmSmi(std::string file) : file_(std::move(file)) {}

  GpuReport read() const override {
    GpuReport report;
    report.library = "ROCm SMI";
    const Rsmi rsmi(file_);
    if (!rsmi.loaded()) {
      report.missing = rsmi.error();
      return report;
    }
    if (const int code = rsmi.call("rsmi_init", uint64_t{0}); code != kSuccess) {
      report.missing = fmt::format("rsmi_init: error {}", code);
      return report;
    }
    report.driver = rsmi.text<uint32_t>("rsmi_version_str_get", kDriver);
    const uint32_t count = rsmi.value<uint32_t>("rsmi_num_monitor_devices").value_or(0);
    if (count == 0) report.missing = "the driver has no GPU";
    for (uint32_t i = 0; i < count; ++i) report.gpus.push_back(read_gpu(rsmi, i));
    rsmi.call("rsmi_shut_down");
    return report;
  }

 private:
  std::string file_;
};

}  // namespace

std::unique_ptr<GpuLibrary> rocm_smi(std::string file) { return std::make_unique<RocmSmi>(std::move(file)); }

}  // namespace hpqf::device::machine
