// Links of cards that no GPU library speaks for, fabric ports, energy counters.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/device/machine/advice.h"

namespace hpqf::device::machine {
namespace {

// A vendor's library is asked first: it knows the link of its own GPUs.
bool spoken_for(const MachineFacts& facts, const PciDevice& device) {
  for (const GpuFacts* gpu : facts.all_gpus())
    if (gpu->vendor == device.vendor && gpu->pcie.largest_width > 0) return true;
  return false;
}

}  // namespace

void advise_bus(const MachineFacts& facts, std::vector<Finding>& findings) {
  for (const PciDevice& d : facts.bus.devices) {
    if (spoken_for(facts, d)) continue;
    const std::string name = fmt::format("{} {} at {}", d.vendor.empty() ? d.id : d.vendor, d.kind, d.address);
    if (d.link.narrow())
      findings.push_back({Severity::problem, "pcie-width",
                          fmt::format("{}: PCIe x{} of x{}", name, d.link.width, d.link.largest_width),
                          "its bandwidth is lower by that ratio",
                          "reseat the card; look at the slot's lanes in the firmware"});
    // GPUs lower the speed of an idle link themselves; network cards do not.
    if (d.link.slow() && d.kind == "network")
      findings.push_back({Severity::warning, "pcie-speed",
                          fmt::format("{}: {:g} GT/s of {:g}", name, d.link.speed, d.link.largest_speed),
                          "its bandwidth is lower by that ratio", "look at the slot's generation in the firmware"});
  }
  for (const FabricPort& port : facts.bus.ports)
    if (port.state != "ACTIVE")
      findings.push_back({Severity::warning, "fabric-port-down",
                          fmt::format("{} port {} ({}): {}", port.device, port.port, port.layer, port.state),
                          "exchange between machines has one port less",
                          "ibstat; look at the cable and the subnet manager"});
  const auto& energy = facts.bus.energy;
  if (!energy.empty() && std::none_of(energy.begin(), energy.end(), [](const auto& e) { return e.readable; }))
    findings.push_back({Severity::note, "energy-unreadable", "the CPU's energy counters (RAPL) are for root alone",
                        "energy of the CPU cannot be measured, only modelled",
                        "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj, if your rules allow it"});
}

}  // namespace hpqf::device::machine
