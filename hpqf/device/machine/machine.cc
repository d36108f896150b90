#include "hpqf/device/machine/machine.h"

#include <algorithm>

namespace hpqf::device::machine {

MachineFacts detect(const FileTree& tree, std::vector<GpuReport> gpus) {
  MachineFacts facts;
  facts.kernel = tree.line("proc/sys/kernel/osrelease").value_or("");
  facts.cpu = detect_cpu(tree);
  facts.memory = detect_memory(tree);
  facts.limits = detect_limits(tree);
  facts.bus = detect_bus(tree);
  facts.gpus = std::move(gpus);
  return facts;
}

int MachineFacts::usable_cpus() const {
  const int allowed = static_cast<int>(limits.cpus.size());
  return allowed > 0 ? std::min(allowed, cpu.logical) : cpu.logical;
}

std::vector<const GpuFacts*> MachineFacts::all_gpus() const {
  std::vector<const GpuFacts*> all;
  for (const GpuReport& report : gpus)
    for (const GpuFacts& gpu : report.gpus) all.push_back(&gpu);
  return all;
}

std::vector<GpuReport> read_gpus() { return {nvml()->read(), rocm_smi()->read()}; }

namespace {

// "GPU-5a3b0f1e-..." -> "GPU-5a3b0f1e": enough to tell two apart, too little to find one again.
std::string shortened(const std::string& uuid) {
  const size_t start = uuid.starts_with("MIG-") || uuid.starts_with("GPU-") ? 4 : 0;
  return uuid.substr(0, std::min(start + 8, uuid.size()));
}

}  // namespace

Recording record(const FileTree& tree, std::vector<GpuReport> gpus) {
  const RecordingTree recorder(tree);
  detect(recorder, {});
  for (GpuReport& report : gpus)
    for (GpuFacts& gpu : report.gpus) {
      gpu.uuid = shortened(gpu.uuid);
      for (GpuPartition& partition : gpu.partitions) partition.uuid = shortened(partition.uuid);
    }
  return {recorder.files(), std::move(gpus)};
}

}  // namespace hpqf::device::machine
