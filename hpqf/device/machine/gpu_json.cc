#include "hpqf/device/machine/gpu_json.h"

namespace hpqf::device::machine {
namespace {

Json partition_json(const GpuPartition& p) {
  Json json{{"name", p.name}};
  put(json, "uuid", p.uuid);
  put(json, "memory_bytes", p.memory_bytes);
  put(json, "slices", p.slices);
  put(json, "multiprocessors", p.multiprocessors);
  return json;
}

GpuPartition read_partition(const Json& json) {
  GpuPartition p;
  get(json, "name", p.name);
  get(json, "uuid", p.uuid);
  get(json, "memory_bytes", p.memory_bytes);
  get(json, "slices", p.slices);
  get(json, "multiprocessors", p.multiprocessors);
  return p;
}

// The flat optional facts, once for both directions: `each(key, member)`.
template <typename Gpu, typename Each>
void optional_facts(Gpu& g, const Each& each) {
  each("memory_bytes", g.memory_bytes);
  each("memory_used_bytes", g.memory_used_bytes);
  each("ecc", g.ecc);
  each("power_limit_watts", g.power.limit_watts);
  each("power_default_watts", g.power.default_watts);
  each("power_least_watts", g.power.least_watts);
  each("power_most_watts", g.power.most_watts);
  each("sm_mhz", g.clocks.sm_mhz);
  each("largest_sm_mhz", g.clocks.largest_sm_mhz);
  each("memory_mhz", g.clocks.memory_mhz);
  each("largest_memory_mhz", g.clocks.largest_memory_mhz);
  each("mig", g.mig);
  each("mig_after_reset", g.mig_after_reset);
  each("nvlink_version", g.nvlink.version);
  each("uuid", g.uuid);
  each("pci_address", g.pci_address);
  each("pci_id", g.pci_id);
  each("architecture", g.architecture);
  each("partition_mode", g.partition_mode);
}

Json one_gpu(const GpuFacts& gpu) {
  Json json{{"index", gpu.index}, {"vendor", gpu.vendor}, {"name", gpu.name}};
  optional_facts(gpu, [&](const char* key, const auto& value) { put(json, key, value); });
  if (!gpu.slowed_by.empty()) json["slowed_by"] = gpu.slowed_by;
  for (const GpuPartition& p : gpu.partitions) json["partitions"].push_back(partition_json(p));
  if (gpu.nvlink.present > 0) {
    json["nvlinks"] = gpu.nvlink.present;
    json["nvlinks_active"] = gpu.nvlink.active;
    json["nvlink_to_switch"] = gpu.nvlink.to_switch;
  }
  if (gpu.pcie.largest_width > 0) {
    json["pcie_width"] = gpu.pcie.width;
    json["pcie_largest_width"] = gpu.pcie.largest_width;
  }
  if (gpu.largest_generation > 0) {
    json["pcie_generation"] = gpu.generation;
    json["pcie_largest_generation"] = gpu.largest_generation;
  }
  if (!gpu.peers.empty()) json["peers"] = gpu.peers;
  return json;
}

GpuFacts read_gpu(const Json& json) {
  GpuFacts gpu;
  get(json, "index", gpu.index);
  get(json, "vendor", gpu.vendor);
  gpu.name = json.at("name").get<std::string>();
  optional_facts(gpu, [&](const char* key, auto& value) { get(json, key, value); });
  get(json, "slowed_by", gpu.slowed_by);
  if (json.contains("partitions"))
    for (const Json& p : json.at("partitions")) gpu.partitions.push_back(read_partition(p));
  get(json, "nvlinks", gpu.nvlink.present);
  get(json, "nvlinks_active", gpu.nvlink.active);
  get(json, "nvlink_to_switch", gpu.nvlink.to_switch);
  get(json, "pcie_width", gpu.pcie.width);
  get(json, "pcie_largest_width", gpu.pcie.largest_width);
  get(json, "pcie_generation", gpu.generation);
  get(json, "pcie_largest_generation", gpu.largest_generation);
  get(json, "peers", gpu.peers);
  return gpu;
}

}  // namespace

Json gpu_json(const std::vector<GpuReport>& reports) {
  Json all = Json::array();
  for (const GpuReport& report : reports) {
    Json json{{"library", report.library}};
    put(json, "driver", report.driver);
    put(json, "missing", report.missing);
    json["devices"] = Json::array();
    for (const GpuFacts& gpu : report.gpus) json["devices"].push_back(one_gpu(gpu));
    if (!report.notes.empty()) json["notes"] = report.notes;
    all.push_back(std::move(json));
  }
  return all;
}

std::vector<GpuReport> read_gpu_json(const Json& json) {
  std::vector<GpuReport> reports;
  for (const Json& one : json) {
    GpuReport report;
    report.library = one.at("library").get<std::string>();
    get(one, "driver", report.driver);
    get(one, "missing", report.missing);
    get(one, "notes", report.notes);
    for (const Json& gpu : one.at("devices")) report.gpus.push_back(read_gpu(gpu));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace hpqf::device::machine
