// Machines as JSON: the facts for a report, the recording for another machine.
#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/device/machine/gpu_json.h"
#include "hpqf/device/machine/machine.h"

namespace hpqf::device::machine {
namespace {

constexpr int kVersion = 1;

Json cpu_json(const CpuFacts& cpu) {
  Json json{{"model", cpu.model},
            {"architecture", cpu.architecture},
            {"virtual_machine", cpu.virtual_machine},
            {"logical", cpu.logical},
            {"cores", cpu.cores},
            {"packages", cpu.packages},
            {"isa", cpu.features.isa()},
            {"threads_per_core", cpu.threads_per_core},
            {"largest_caches", cpu.largest_caches}};
  if (!cpu.further.empty()) json["isa_further"] = cpu.further;
  json["caches"] = Json::array();
  for (const CpuCache& c : cpu.caches)
    json["caches"].push_back({{"level", c.level}, {"type", c.type}, {"bytes", c.bytes}, {"shared_by", c.shared_by}});
  Json frequency = Json::object();
  put(frequency, "driver", cpu.frequency.driver);
  put(frequency, "governor", cpu.frequency.governor);
  put(frequency, "preference", cpu.frequency.preference);
  put(frequency, "largest_mhz", cpu.frequency.largest_mhz);
  put(frequency, "cap_mhz", cpu.frequency.cap_mhz);
  json["frequency"] = frequency;
  return json;
}

Json memory_json(const MemoryFacts& memory) {
  Json json{{"total_bytes", memory.total_bytes}, {"available_bytes", memory.available_bytes}};
  put(json, "transparent_huge_pages", memory.transparent_huge_pages);
  json["huge_pages"] = memory.huge_pages;
  json["huge_page_bytes"] = memory.huge_page_bytes;
  json["numa_nodes"] = Json::array();
  for (const NumaNode& n : memory.nodes)
    json["numa_nodes"].push_back({{"id", n.id}, {"cpus", n.cpus}, {"bytes", n.bytes}});
  return json;
}

Json limits_json(const LimitFacts& limits) {
  Json json = Json::object();
  put(json, "cpu_quota", limits.cpu_quota);
  put(json, "cpu_file", limits.cpu_file);
  put(json, "memory_bytes", limits.memory_bytes);
  put(json, "memory_file", limits.memory_file);
  json["cpus"] = limits.cpus;
  json["memory_nodes"] = limits.memory_nodes;
  return json;
}

Json bus_json(const BusFacts& bus) {
  Json json{{"pci", Json::array()}, {"fabric", Json::array()}, {"energy", Json::array()}};
  for (const PciDevice& d : bus.devices) {
    Json one{{"address", d.address}, {"id", d.id}, {"kind", d.kind}};
    put(one, "vendor", d.vendor);
    put(one, "numa_node", d.numa_node);
    if (d.link.largest_width > 0)
      one["link"] = {{"width", d.link.width},
                     {"largest_width", d.link.largest_width},
                     {"gigatransfers", d.link.speed},
                     {"largest_gigatransfers", d.link.largest_speed}};
    json["pci"].push_back(std::move(one));
  }
  for (const FabricPort& p : bus.ports) {
    Json one{{"device", p.device}, {"port", p.port}, {"state", p.state}, {"rate", p.rate}, {"layer", p.layer}};
    put(one, "numa_node", p.numa_node);
    json["fabric"].push_back(std::move(one));
  }
  for (const EnergyCounter& e : bus.energy) json["energy"].push_back({{"name", e.name}, {"readable", e.readable}});
  return json;
}

}  // namespace

std::string to_json(const MachineFacts& facts) {
  const Json json{{"kernel", facts.kernel},
                  {"cpu", cpu_json(facts.cpu)},
                  {"memory", memory_json(facts.memory)},
                  {"limits", limits_json(facts.limits)},
                  {"bus", bus_json(facts.bus)},
                  {"gpu_libraries", gpu_json(facts.gpus)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const Recording& recording) {
  const Json json{{"schema", "hpqf.machine"},
                  {"version", kVersion},
                  {"files", recording.files.text},
                  {"denied", recording.files.denied},
                  {"gpu_libraries", gpu_json(recording.gpus)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Recording parse_recording(std::string_view text, const std::string& where) {
  const std::string todo = "make it again on that machine: hpqf doctor --record DIR";
  Recording recording;
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != "hpqf.machine" || json.at("version") != kVersion)
      throw Error(where, fmt::format("a recorded machine: schema hpqf.machine, version {}", kVersion), todo);
    recording.files.text = json.at("files").get<std::map<std::string, std::string>>();
    recording.files.denied = json.at("denied").get<std::set<std::string>>();
    recording.gpus = read_gpu_json(json.at("gpu_libraries"));
  } catch (const nlohmann::json::exception& e) {
    throw Error(fmt::format("{}: {}", where, e.what()), "a recorded machine, whole", todo);
  }
  return recording;
}

}  // namespace hpqf::device::machine
