#include "hpqf/device/machine/bus.h"

#include <charconv>

namespace hpqf::device::machine {
namespace {

// Vendor ids as pci-ids.ucw.cz lists them.
struct Vendor {
  const char *id, *name;
  bool accelerators_only;
};
constexpr Vendor kVendors[] = {{"10de", "NVIDIA", false}, {"1002", "AMD", false},      {"8086", "Intel", false},
                               {"1da3", "Habana", true},  {"cabc", "Cambricon", true}, {"1ed5", "Moore Threads", false},
                               {"19e5", "Huawei", false}, {"15b3", "Mellanox", false}};

const Vendor* find_vendor(const std::string& id) {
  for (const Vendor& vendor : kVendors)
    if (id == vendor.id) return &vendor;
  return nullptr;
}

std::string hex(const std::string& text) { return text.starts_with("0x") ? text.substr(2) : text; }

std::string kind_of(const std::string& pci_class, const std::string& vendor) {  // class "030200"
  if (pci_class.starts_with("03")) return "display";
  if (pci_class.starts_with("12")) return "accelerator";
  if (pci_class.starts_with("0207") || (pci_class.starts_with("02") && vendor == "15b3")) return "network";
  const Vendor* known = find_vendor(vendor);
  return known && known->accelerators_only ? "accelerator" : "";
}

double leading_number(const std::string& text) {  // "16.0 GT/s PCIe"
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end != text.data() ? value : 0;
}

std::optional<int> numa_node(const FileTree& tree, const std::string& file) {
  const auto node = tree.number(file);
  return node && *node >= 0 ? std::optional(static_cast<int>(*node)) : std::nullopt;  // -1: not tied to one
}

std::vector<PciDevice> detect_devices(const FileTree& tree) {
  std::vector<PciDevice> devices;
  const std::string all = "sys/bus/pci/devices";
  for (const std::string& address : tree.list(all)) {
    const std::string folder = all + "/" + address + "/";
    const std::string pci_class = hex(tree.line(folder + "class").value_or(""));
    const std::string vendor = hex(tree.line(folder + "vendor").value_or(""));
    const std::string kind = kind_of(pci_class, vendor);
    if (kind.empty()) continue;
    PciDevice device;
    device.address = address;
    device.id = vendor + ":" + hex(tree.line(folder + "device").value_or(""));
    device.kind = kind;
    if (const Vendor* known = find_vendor(vendor)) device.vendor = known->name;
    device.numa_node = numa_node(tree, folder + "numa_node");
    auto lanes = [&](const char* file) { return static_cast<int>(tree.number(folder + file).value_or(0)); };
    auto speed = [&](const char* file) { return leading_number(tree.line(folder + file).value_or("")); };
    device.link = {lanes("current_link_width"), lanes("max_link_width"), speed("current_link_speed"),
                   speed("max_link_speed")};
    // Virtual devices report nonsense: 255 lanes, or a width of 0.
    if (device.link.width > 32 || device.link.largest_width > 32) device.link = {};
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string after_number(const std::string& text) {  // "4: ACTIVE"
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

std::vector<FabricPort> detect_ports(const FileTree& tree) {
  std::vector<FabricPort> ports;
  const std::string all = "sys/class/infiniband";
  for (const std::string& device : tree.list(all)) {
    const std::string folder = all + "/" + device + "/";
    for (const std::string& port : tree.list(folder + "ports")) {
      const std::string at = folder + "ports/" + port + "/";
      ports.push_back({device, static_cast<int>(to_integer(port).value_or(0)),
                       after_number(tree.line(at + "state").value_or("")), tree.line(at + "rate").value_or(""),
                       tree.line(at + "link_layer").value_or(""), numa_node(tree, folder + "device/numa_node")});
    }
  }
  return ports;
}

std::vector<EnergyCounter> detect_energy(const FileTree& tree) {
  std::vector<EnergyCounter> counters;
  const std::string all = "sys/class/powercap";
  for (const std::string& zone : tree.list(all)) {
    const auto name = tree.line(all + "/" + zone + "/name");
    if (!zone.starts_with("intel-rapl:") || !name || !name->starts_with("package")) continue;
    counters.push_back({*name, tree.number(all + "/" + zone + "/energy_uj").has_value()});
  }
  return counters;
}

}  // namespace

BusFacts detect_bus(const FileTree& tree) { return {detect_devices(tree), detect_ports(tree), detect_energy(tree)}; }

}  // namespace hpqf::device::machine
