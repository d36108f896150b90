#include "hpqf/device/machine/cpu.h"

#include <algorithm>
#include <set>

namespace hpqf::device::machine {
namespace {

const std::string kCpus = "sys/devices/system/cpu/";

// ARM's /proc/cpuinfo has numbers instead of a name: implementer and part, from the manuals of the cores.
std::string arm_model(const std::string& implementer, const std::string& part) {
  struct Row {
    const char *implementer, *part, *name;
  };
  constexpr Row kRows[] = {{"0x41", "0xd0c", "ARM Neoverse N1"}, {"0x41", "0xd40", "ARM Neoverse V1"},
                           {"0x41", "0xd49", "ARM Neoverse N2"}, {"0x41", "0xd4f", "ARM Neoverse V2"},
                           {"0x46", "0x001", "Fujitsu A64FX"},   {"0x48", "0xd01", "HiSilicon Kunpeng 920"},
                           {"0xc0", "0xac3", "Ampere One"}};
  for (const Row& row : kRows)
    if (implementer == row.implementer && part == row.part) return row.name;
  if (implementer.empty()) return "unknown CPU";
  return "ARM CPU, implementer " + implementer + " part " + part;
}

int64_t cache_bytes(const std::string& text) {  // "48K", "1024K", "36864K", "32M"
  if (text.empty()) return 0;
  const int64_t unit = text.back() == 'K' ? 1024 : text.back() == 'M' ? 1024 * 1024 : 1;
  return to_integer(unit == 1 ? text : text.substr(0, text.size() - 1)).value_or(0) * unit;
}

std::vector<CpuCache> detect_caches(const FileTree& tree) {
  std::vector<CpuCache> caches;
  const std::string folder = kCpus + "cpu0/cache/";
  for (const std::string& name : tree.list(folder.substr(0, folder.size() - 1))) {
    if (!name.starts_with("index")) continue;
    const auto level = tree.number(folder + name + "/level");
    const auto type = tree.line(folder + name + "/type");
    const auto size = tree.line(folder + name + "/size");
    if (!level || !type || !size) continue;
    const auto shared = parse_list(tree.line(folder + name + "/shared_cpu_list").value_or("0"));
    caches.push_back(
        {static_cast<int>(*level), *type, cache_bytes(*size), std::max(1, static_cast<int>(shared.size()))});
  }
  return caches;
}

// How many groups the CPUs fall into: the groups are lists of CPUs, in a file of each member. Reads one file a group.
int count_groups(const FileTree& tree, const std::vector<int>& cpus, const std::vector<std::string>& files) {
  std::set<int> seen;
  int groups = 0;
  for (int cpu : cpus) {
    if (seen.count(cpu)) continue;
    std::optional<std::string> members;
    for (const std::string& file : files) {  // newer kernels have a second name for it
      members = tree.line(kCpus + "cpu" + std::to_string(cpu) + "/" + file);
      if (members) break;
    }
    if (!members) return groups;
    ++groups;
    seen.insert(cpu);
    for (int member : parse_list(*members)) seen.insert(member);
  }
  return groups;
}

CpuFrequency detect_frequency(const FileTree& tree) {
  const std::string folder = kCpus + "cpu0/cpufreq/";
  auto text = [&](const char* name) { return tree.line(folder + name).value_or(""); };
  auto mhz = [&](const char* name) -> std::optional<double> {
    const auto khz = tree.number(folder + name);
    return khz ? std::optional(static_cast<double>(*khz) / 1000) : std::nullopt;
  };
  return {text("scaling_driver"), text("scaling_governor"), text("energy_performance_preference"),
          mhz("cpuinfo_max_freq"), mhz("scaling_max_freq")};
}

}  // namespace

CpuFeatures features_from_flags(const std::vector<std::string>& flags) {
  const std::set<std::string> set(flags.begin(), flags.end());
  auto has = [&](const char* flag) { return set.count(flag) > 0; };
  CpuFeatures f;
  f.avx2 = has("avx2");
  f.fma = has("fma");
  f.f16c = has("f16c");
  f.avx512 = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
  f.avx512_vnni = f.avx512 && has("avx512_vnni");
  f.avx512_bf16 = f.avx512 && has("avx512_bf16");
  f.avx512_fp16 = f.avx512 && has("avx512_fp16");
  f.avx_vnni = has("avx_vnni");
  f.amx_bf16 = has("amx_tile") && has("amx_bf16");
  f.amx_int8 = has("amx_tile") && has("amx_int8");
  f.neon_dot = has("asimddp");
  return f;
}

CpuFacts detect_cpu(const FileTree& tree) {
  const auto info = tree.fields("proc/cpuinfo", {"model name", "flags", "Features", "CPU implementer", "CPU part"});
  auto field = [&](const char* key) {
    const auto at = info.find(key);
    return at == info.end() ? std::string() : at->second;
  };
  CpuFacts facts;
  const bool arm = info.count("Features") > 0;
  const std::vector<std::string> flags = words(arm ? field("Features") : field("flags"));
  if (!flags.empty()) facts.architecture = arm ? "aarch64" : "x86_64";
  facts.model =
      field("model name").empty() ? arm_model(field("CPU implementer"), field("CPU part")) : field("model name");
  facts.virtual_machine = std::find(flags.begin(), flags.end(), "hypervisor") != flags.end();
  facts.features = features_from_flags(flags);
  for (const char* name : {"bf16", "i8mm", "sve", "sve2", "sme"})
    if (arm && std::find(flags.begin(), flags.end(), name) != flags.end()) facts.further.push_back(name);

  const std::vector<int> online = parse_list(tree.line(kCpus + "online").value_or("0"));
  facts.logical = static_cast<int>(online.size());
  facts.cores = count_groups(tree, online, {"topology/core_cpus_list", "topology/thread_siblings_list"});
  facts.packages = count_groups(tree, online, {"topology/package_cpus_list", "topology/core_siblings_list"});
  if (facts.cores == 0) facts.cores = facts.logical;  // no topology: some containers hide it
  if (facts.packages == 0) facts.packages = 1;
  facts.threads_per_core = (facts.logical + facts.cores - 1) / std::max(1, facts.cores);
  facts.caches = detect_caches(tree);
  if (!facts.caches.empty()) {
    const std::string last = "cache/index" + std::to_string(facts.caches.size() - 1) + "/shared_cpu_list";
    facts.largest_caches = count_groups(tree, online, {last});
  }
  facts.frequency = detect_frequency(tree);
  facts.features.brand = facts.model;
  facts.features.logical_cores = facts.logical;
  return facts;
}

}  // namespace hpqf::device::machine
