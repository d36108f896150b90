// The sections of the report that say what the machine is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "apps/hpqf/doctor_report.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using namespace device::machine;
using observe::human_bytes;

std::string line(const char* name, const std::string& text) { return fmt::format("  {:<10} {}\n", name, text); }

std::string plural(int64_t n, const std::string& word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

std::string spans(const std::vector<int>& members) {
  std::string text;
  for (size_t i = 0; i < members.size();) {
    size_t last = i;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", members[i]);
    if (last > i) text += fmt::format("-{}", members[last]);
    i = last + 1;
  }
  return text;
}

std::string caches(const CpuFacts& cpu) {
  std::vector<std::string> parts;
  for (const CpuCache& c : cpu.caches) {
    if (c.type == "Instruction") continue;
    parts.push_back(fmt::format("L{} {}{}", c.level, human_bytes(static_cast<double>(c.bytes)),
                                c.shared_by > cpu.threads_per_core ? fmt::format(" for {} CPUs", c.shared_by) : ""));
  }
  return fmt::format("{}{}", fmt::join(parts, ", "),
                     cpu.largest_caches > 1 ? fmt::format("; {} of the last", cpu.largest_caches) : "");
}

std::string frequency(const CpuFrequency& f) {
  std::string text = fmt::format("driver {}, governor {}", f.driver, f.governor);
  if (!f.preference.empty()) text += fmt::format(", preference {}", f.preference);
  if (f.cap_mhz) text += fmt::format(", up to {:.0f} MHz", *f.cap_mhz);
  return text;
}

std::string memory(const MemoryFacts& m) {
  std::string text = fmt::format("{}, {} available", human_bytes(static_cast<double>(m.total_bytes)),
                                 human_bytes(static_cast<double>(m.available_bytes)));
  if (!m.transparent_huge_pages.empty()) text += fmt::format(", transparent huge pages: {}", m.transparent_huge_pages);
  if (m.huge_pages > 0)
    text += fmt::format(", {} set aside of {}", m.huge_pages, human_bytes(static_cast<double>(m.huge_page_bytes)));
  return text;
}

std::string limits(const MachineFacts& facts) {
  std::vector<std::string> parts;
  const LimitFacts& l = facts.limits;
  if (l.cpu_quota) parts.push_back(fmt::format("{:g} CPUs of time", *l.cpu_quota));
  if (l.memory_bytes) parts.push_back(human_bytes(static_cast<double>(*l.memory_bytes)) + " of memory");
  if (facts.usable_cpus() < facts.cpu.logical) parts.push_back(fmt::format("CPUs {}", spans(l.cpus)));
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string energy(const std::vector<EnergyCounter>& counters) {
  if (counters.empty()) return "no counters";
  const auto readable = std::count_if(counters.begin(), counters.end(), [](const auto& c) { return c.readable; });
  return fmt::format("{}, {} readable", plural(static_cast<int64_t>(counters.size()), "RAPL counter"), readable);
}

std::string watts(const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "?"; }

std::string mode(const GpuFacts& gpu) {
  if (gpu.mig.value_or(false)) return plural(static_cast<int64_t>(gpu.partitions.size()), "MIG instance");
  return gpu.partition_mode.empty() ? "whole" : gpu.partition_mode;
}

std::string gpu_table(const GpuReport& report) {
  observe::TextTable table({{"GPU"},
                            {"name"},
                            {"pci id"},
                            {"arch"},
                            {"memory", true},
                            {"power W", true},
                            {"PCIe"},
                            {"NVLink"},
                            {"ECC"},
                            {"mode"}});
  for (const GpuFacts& g : report.gpus) {
    const std::string pcie =
        g.pcie.largest_width == 0 ? "?" : fmt::format("x{} of x{}", g.pcie.width, g.pcie.largest_width);
    const std::string nvlink = g.nvlink.present == 0 ? "-"
                                                     : fmt::format("{} of {}{}", g.nvlink.active, g.nvlink.present,
                                                                   g.nvlink.to_switch ? ", switch" : "");
    table.add({std::to_string(g.index), g.name, g.pci_id, g.architecture,
               g.memory_bytes ? human_bytes(static_cast<double>(*g.memory_bytes)) : "?",
               watts(g.power.limit_watts) + " of " + watts(g.power.default_watts), pcie, nvlink,
               g.ecc ? (*g.ecc ? "on" : "off") : "?", mode(g)});
  }
  return table.text();
}

std::string gpus(const MachineFacts& facts) {
  std::string text = "GPUs\n";
  for (const GpuReport& report : facts.gpus) {
    if (report.gpus.empty()) {
      text += line(report.library.c_str(), fmt::format("none: {}", report.missing));
      continue;
    }
    text += line(report.library.c_str(), fmt::format("driver {}", report.driver)) + gpu_table(report);
    for (const GpuFacts& g : report.gpus)
      for (const GpuPartition& p : g.partitions)
        text += line("", fmt::format("GPU {}: {}, {}", g.index, p.name,
                                     p.memory_bytes ? human_bytes(static_cast<double>(*p.memory_bytes)) : "?"));
    for (const std::string& note : report.notes) text += line("", note);
  }
  return text;
}

std::string numa(const std::vector<NumaNode>& nodes) {
  std::string text;
  for (const NumaNode& n : nodes)
    text += line(n.id == nodes.front().id ? "NUMA" : "",
                 fmt::format("node {}: CPUs {}, {}", n.id, spans(n.cpus), human_bytes(static_cast<double>(n.bytes))));
  return text.empty() ? line("NUMA", "not told by the system") : text;
}

std::string pci(const std::vector<PciDevice>& devices) {
  if (devices.empty()) return line("PCI", "no accelerator, display or fabric card");
  observe::TextTable table({{"card"}, {"id"}, {"kind"}, {"NUMA"}, {"PCIe now"}, {"PCIe at best"}});
  for (const PciDevice& d : devices) {
    auto link = [&](int width, double speed) { return width > 0 ? fmt::format("x{} {:g} GT/s", width, speed) : "?"; };
    table.add({d.address, d.vendor.empty() ? d.id : d.id + " " + d.vendor, d.kind,
               d.numa_node ? std::to_string(*d.numa_node) : "-", link(d.link.width, d.link.speed),
               link(d.link.largest_width, d.link.largest_speed)});
  }
  return table.text();
}

}  // namespace

std::string machine_text(const MachineFacts& facts) {
  const CpuFacts& cpu = facts.cpu;
  std::string isa = cpu.features.isa();
  for (const std::string& name : cpu.further) isa += fmt::format("+{}", name);
  std::string text = "Machine\n";
  text += line("CPU", fmt::format("{}{}", cpu.model, cpu.virtual_machine ? " (virtual machine)" : ""));
  text += line("cores", fmt::format("{} in {}, {} online", plural(cpu.cores, "core"), plural(cpu.packages, "package"),
                                    plural(cpu.logical, "CPU")));
  text += line("isa", isa);
  if (!cpu.caches.empty()) text += line("caches", caches(cpu));
  if (!cpu.frequency.driver.empty()) text += line("clock", frequency(cpu.frequency));
  text += line("memory", memory(facts.memory));
  text += line("limits", limits(facts));
  text += line("energy", energy(facts.bus.energy));
  text += line("kernel", facts.kernel);
  text += fmt::format("\n{}\nTopology\n{}{}", gpus(facts), numa(facts.memory.nodes), pci(facts.bus.devices));
  for (const FabricPort& p : facts.bus.ports)
    text += line("fabric", fmt::format("{} port {}: {}, {}, {}", p.device, p.port, p.layer, p.state, p.rate));
  return text;
}

}  // namespace hpqf::app
