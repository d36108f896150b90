// GPUs: power, clocks, partitions, links, and whether torch can use them at all.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/device/machine/advice.h"

namespace hpqf::device::machine {
namespace {

std::string called(const GpuFacts& gpu) { return fmt::format("GPU {} ({})", gpu.index, gpu.name); }

void power(const GpuFacts& gpu, std::vector<Finding>& findings) {
  const auto &limit = gpu.power.limit_watts, &usual = gpu.power.default_watts;
  if (limit && usual && *limit < 0.97 * *usual)
    findings.push_back({Severity::warning, "gpu-power-cap",
                        fmt::format("{}: power limit {:.0f} W of {:.0f} W by default", called(gpu), *limit, *usual),
                        "matrix products in low precision draw the most power and lose clock first",
                        gpu.vendor == "NVIDIA" ? fmt::format("nvidia-smi -i {} -pl {:.0f}", gpu.index, *usual)
                                               : fmt::format("rocm-smi -d {} --resetpoweroverdrive", gpu.index)});
  for (const std::string& reason : gpu.slowed_by) {
    if (reason == "power cap" || reason == "application clocks") continue;  // a busy GPU at its cap is as it should be
    findings.push_back({Severity::problem, "gpu-slowed",
                        fmt::format("{}: clocks are lowered now: {}", called(gpu), reason),
                        "the GPU is too hot, or its power supply asks for less", "look at cooling, fans and cables"});
  }
  if (std::find(gpu.slowed_by.begin(), gpu.slowed_by.end(), "application clocks") != gpu.slowed_by.end())
    findings.push_back(
        {Severity::note, "gpu-application-clocks", fmt::format("{}: clocks fixed by a setting", called(gpu)),
         "good for comparisons, but not the top speed", fmt::format("nvidia-smi -i {} -rac", gpu.index)});
  if (gpu.ecc && !*gpu.ecc)
    findings.push_back({Severity::warning, "gpu-ecc-off", fmt::format("{}: ECC is off", called(gpu)),
                        "a flipped bit in memory goes unseen into weights and checkpoints",
                        fmt::format("nvidia-smi -i {} -e 1, then restart the GPU", gpu.index)});
}

void partitions(const GpuFacts& gpu, std::vector<Finding>& findings) {
  if (gpu.mig.value_or(false)) {
    int64_t largest = 0;
    for (const GpuPartition& p : gpu.partitions) largest = std::max(largest, p.memory_bytes.value_or(0));
    const Severity severity = gpu.partitions.empty() ? Severity::problem : Severity::warning;
    findings.push_back(
        {severity, "gpu-mig",
         gpu.partitions.empty()
             ? fmt::format("{}: MIG is on and has no instance", called(gpu))
             : fmt::format("{}: MIG splits it into {} instances, the largest with {:.1f} GiB", called(gpu),
                           gpu.partitions.size(), static_cast<double>(largest) / (1 << 30)),
         gpu.partitions.empty() ? "no program can use the GPU"
                                : "a process gets one instance: its share of units, memory and bandwidth, and "
                                  "no NVLink or direct access to others",
         gpu.partitions.empty() ? fmt::format("nvidia-smi mig -i {} -cgi PROFILE -C, or -mig 0", gpu.index)
                                : "CUDA_VISIBLE_DEVICES=MIG-... chooses one; nvidia-smi -mig 0 undoes it"});
  }
  if (gpu.mig && gpu.mig_after_reset && *gpu.mig != *gpu.mig_after_reset)
    findings.push_back(
        {Severity::warning, "gpu-mig-pending",
         fmt::format("{}: MIG will be {} after a reset", called(gpu), *gpu.mig_after_reset ? "on" : "off"),
         "the GPU is another one after the next restart", "nvidia-smi --gpu-reset at a quiet time"});
  if (!gpu.partition_mode.empty() && !gpu.partition_mode.starts_with("SPX"))
    findings.push_back({Severity::note, "gpu-partition-mode",
                        fmt::format("{}: partition mode {}", called(gpu), gpu.partition_mode),
                        "a device is a part of the chip", "rocm-smi --setcomputepartition SPX makes it one"});
}

void links(const GpuFacts& gpu, std::vector<Finding>& findings) {
  if (gpu.pcie.narrow())
    findings.push_back({Severity::problem, "gpu-pcie-width",
                        fmt::format("{}: PCIe x{} of x{}", called(gpu), gpu.pcie.width, gpu.pcie.largest_width),
                        "copies from and to the host, and exchange without NVLink, are slower by that ratio",
                        "reseat the card or riser; look at the slot's lanes in the firmware"});
  if (gpu.nvlink.active < gpu.nvlink.present)
    findings.push_back({Severity::problem, "gpu-nvlink-down",
                        fmt::format("{}: {} of {} NVLinks are up", called(gpu), gpu.nvlink.active, gpu.nvlink.present),
                        "exchange between GPUs is slower, or takes the way over PCIe",
                        "nvidia-smi nvlink -s; on machines with switches start nvidia-fabricmanager"});
}

// Pairs without direct access, once for all GPUs of a library.
void peers(const GpuReport& report, std::vector<Finding>& findings) {
  size_t pairs = 0, refused = 0;
  std::string reason;
  bool nvlink = false;
  for (const GpuFacts& gpu : report.gpus) {
    nvlink |= gpu.nvlink.active > 0;
    for (const std::string& status : gpu.peers) {
      if (status.empty()) continue;
      ++pairs;
      if (status == "ok") continue;
      ++refused;
      reason = status;
    }
  }
  if (refused == 0) return;
  findings.push_back(
      {nvlink ? Severity::problem : Severity::warning, "gpu-p2p-off",
       fmt::format("{} of {} ordered pairs of GPUs have no direct access: {}{}", refused, pairs, reason,
                   nvlink ? ", though NVLink is up" : ""),
       "gradients go through the memory of the host",
       "look at IOMMU and ACS settings and at the driver's options (NVreg_RegistryDwords); GeForce has none"});
}

// The bus shows a GPU that no library reports: the driver is missing, or hidden by the container.
void unseen(const MachineFacts& facts, std::vector<Finding>& findings) {
  for (const PciDevice& device : facts.bus.devices) {
    if (device.kind == "network" || (device.vendor != "NVIDIA" && device.vendor != "AMD")) continue;
    // The display of a server's management chip and of a desktop CPU is no accelerator: AMD's have class "display".
    if (device.vendor == "AMD" && device.kind == "display") continue;
    const char* wanted = device.vendor == "NVIDIA" ? "NVML" : "ROCm SMI";
    for (const GpuReport& report : facts.gpus) {
      if (report.library != wanted || !report.gpus.empty()) continue;
      findings.push_back({Severity::problem, "gpu-no-driver",
                          fmt::format("an {} device ({}, {}) that {} does not show: {}", device.vendor, device.id,
                                      device.address, wanted, report.missing),
                          "no program can use it",
                          "install the driver, or start the container with its GPUs (--gpus all)"});
      return;
    }
  }
}

}  // namespace

void advise_gpus(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings) {
  for (const GpuReport& report : facts.gpus) {
    for (const GpuFacts& gpu : report.gpus) {
      power(gpu, findings);
      partitions(gpu, findings);
      links(gpu, findings);
    }
    peers(report, findings);
    for (const std::string& note : report.notes)
      findings.push_back({Severity::problem, "gpu-unreadable", note, "this GPU is missing from the report",
                          "look at the permissions of /dev/nvidia* and at dmesg"});
  }
  unseen(facts, findings);
  if (!facts.all_gpus().empty() && !setup.torch_has_gpu)
    findings.push_back({Severity::problem, "torch-without-gpu",
                        "there are GPUs, but this torch is built for CPUs alone", "training runs on the CPU",
                        "install a torch built for these GPUs: pytorch.org/get-started"});
}

}  // namespace hpqf::device::machine
