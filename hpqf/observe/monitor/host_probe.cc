#include "hpqf/observe/monitor/host_probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "hpqf/base/clock.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace hpqf::observe {
namespace {
namespace fs = std::filesystem;

std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  return text.str();
}

std::optional<double> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end != text.data() ? std::optional(value) : std::nullopt;
}

std::optional<double> number_in(const std::string& path) {
  const auto text = text_of(path);
  return text ? number(*text) : std::nullopt;
}

// utime and stime are the 14th and 15th fields of stat; the second, the name, may hold blanks and parentheses.
std::optional<double> cpu_seconds(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 14; ++i) fields >> field;
  double user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Of cgroup version 2, else 1. The files at the mount point are those of the container's own group.
std::optional<double> cpu_quota(const std::string& root) {
  if (const auto text = text_of(root + "sys/fs/cgroup/cpu.max")) {
    std::istringstream fields(*text);
    std::string quota;
    double period = 0;
    fields >> quota >> period;
    const auto value = number(quota);  // "max": none
    return value && period > 0 ? std::optional(*value / period) : std::nullopt;
  }
  const auto quota = number_in(root + "sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
             period = number_in(root + "sys/fs/cgroup/cpu/cpu.cfs_period_us");
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

std::optional<double> memory_limit(const std::string& root) {
  auto limit = number_in(root + "sys/fs/cgroup/memory.max");
  if (!limit) limit = number_in(root + "sys/fs/cgroup/memory/memory.limit_in_bytes");
  return limit && *limit < 1e15 ? limit : std::nullopt;  // version 1 says "none" with a number near 2^63
}

std::optional<double> machine_memory(const std::string& root) {
  const auto text = text_of(root + "proc/meminfo");
  const size_t at = text ? text->find("MemTotal:") : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const auto kib = number(std::string_view(*text).substr(at + 9));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace

HostProbe::HostProbe(std::string root) : root_(std::move(root)) {
  if (!root_.ends_with('/')) root_ += '/';
  find_limits();
  find_energy();
  const HostReading first = read();
  if (!first.cpu_seconds) missing_.push_back("CPU time: " + root_ + "proc/self/stat cannot be read");
  if (!first.resident_bytes) missing_.push_back("memory: " + root_ + "proc/self/statm cannot be read");
}

void HostProbe::find_limits() {
  limits_.cpus = usable_cores();
  limits_.cpus_source = fmt::format("{} cores", limits_.cpus);
  if (const auto quota = cpu_quota(root_); quota && *quota < limits_.cpus) {
    limits_.cpus = *quota;
    limits_.cpus_source = fmt::format("container quota of {} CPUs", *quota);
  }
  limits_.memory_bytes = machine_memory(root_);
  limits_.memory_source = "memory of the machine";
  if (const auto limit = memory_limit(root_); limit && (!limits_.memory_bytes || *limit < *limits_.memory_bytes)) {
    limits_.memory_bytes = limit;
    limits_.memory_source = "limit of the container";
  }
}

void HostProbe::find_energy() {
  // Zones of packages; the cores and graphics inside are part of them, memory ("dram") is a subzone beside them.
  std::error_code failed;
  bool refused = false;
  for (const auto& entry : fs::directory_iterator(root_ + "sys/class/powercap", failed)) {
    const std::string folder = entry.path().string();
    const auto zone = text_of(folder + "/name");
    if (!zone || !(zone->starts_with("package") || zone->starts_with("dram"))) continue;
    const auto value = number_in(folder + "/energy_uj");
    if (!value) {
      refused = true;
      continue;
    }
    zones_.push_back({folder + "/energy_uj", number_in(folder + "/max_energy_range_uj").value_or(0), *value, 0});
  }
  if (zones_.empty())
    missing_.push_back(refused ? "energy: this user may not read the RAPL counters"
                               : "energy: this system shows no RAPL counters");
}

HostReading HostProbe::read() {
  HostReading now;
  now.nanoseconds = base::steady_ns();
  if (const auto stat = text_of(root_ + "proc/self/stat")) now.cpu_seconds = cpu_seconds(*stat);
  if (const auto statm = text_of(root_ + "proc/self/statm")) {
    std::istringstream fields(*statm);
    double total = 0, resident = 0;
    if (fields >> total >> resident) now.resident_bytes = resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  double joules = 0;
  for (EnergyZone& zone : zones_) {
    const auto value = number_in(zone.file);
    if (!value) return now;  // half of the counters would be a wrong sum
    double moved = *value - zone.last;
    if (moved < 0) moved += zone.range;  // it started again
    zone.sum += std::max(moved, 0.0);
    zone.last = *value;
    joules += zone.sum * 1e-6;
  }
  if (!zones_.empty()) now.energy_joules = joules;
  return now;
}

}  // namespace hpqf::observe
