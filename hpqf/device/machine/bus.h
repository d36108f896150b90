// What hangs on the buses of a machine: accelerators and fast network ports with their links; energy counters.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/file_tree.h"

namespace hpqf::device::machine {

// A link as it is and as it could be. 0: the system does not tell.
struct PcieLink {
  int width = 0, largest_width = 0;     // lanes
  double speed = 0, largest_speed = 0;  // GT/s per lane
  bool narrow() const { return width > 0 && width < largest_width; }
  bool slow() const { return speed > 0 && speed < largest_speed; }
};

// Display controllers (class 03), processing accelerators (class 12), devices of vendors that make nothing else, and
// InfiniBand controllers (class 0207) and Mellanox network cards.
struct PciDevice {
  std::string address;           // "0000:17:00.0"
  std::string id;                // "10de:2330": vendor and device
  std::string vendor;            // "NVIDIA"; "" when unknown here
  std::string kind;              // "display", "accelerator", "network"
  std::optional<int> numa_node;  // none: not tied to one
  PcieLink link;
};

struct FabricPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  std::string state, rate, layer;  // "ACTIVE", "400 Gb/sec (4X NDR)", "InfiniBand" or "Ethernet"
  std::optional<int> numa_node;
};

struct EnergyCounter {
  std::string name;  // "package-0"
  bool readable = false;
};

struct BusFacts {
  std::vector<PciDevice> devices;
  std::vector<FabricPort> ports;
  std::vector<EnergyCounter> energy;  // RAPL zones of whole packages; also AMD's
};

HPQF_API BusFacts detect_bus(const FileTree& tree);

}  // namespace hpqf::device::machine
