#include "hpqf/device/machine/limits.h"

#include <algorithm>

namespace hpqf::device::machine {
namespace {

// v1 writes "no limit" as the largest multiple of a page: anything from 2^62 is that.
constexpr int64_t kUnlimited = int64_t{1} << 62;

// "/a/b" -> "/a/b", "/a", "": a limit of any group above holds too.
std::vector<std::string> upwards(std::string group) {
  std::vector<std::string> all;
  while (!group.empty() && group != "/") {
    all.push_back(group);
    group = group.substr(0, group.rfind('/'));
  }
  all.push_back("");
  return all;
}

// Both in microseconds; -1 or nothing: no limit.
void take_quota(LimitFacts& limits, std::optional<int64_t> used, std::optional<int64_t> period,
                const std::string& file) {
  if (!used || !period || *used <= 0 || *period <= 0) return;
  const double quota = static_cast<double>(*used) / static_cast<double>(*period);
  if (limits.cpu_quota && *limits.cpu_quota <= quota) return;
  limits.cpu_quota = quota;
  limits.cpu_file = file;
}

void take_memory(LimitFacts& limits, std::optional<int64_t> bytes, const std::string& file) {
  if (!bytes || *bytes <= 0 || *bytes >= kUnlimited) return;
  if (limits.memory_bytes && *limits.memory_bytes <= *bytes) return;
  limits.memory_bytes = bytes;
  limits.memory_file = file;
}

void read_v2(LimitFacts& limits, const FileTree& tree, const std::string& mount, const std::string& group) {
  for (const std::string& at : upwards(group)) {
    const std::string cpu = mount + at + "/cpu.max", memory = mount + at + "/memory.max";
    const auto parts = words(tree.line(cpu).value_or(""));  // "150000 100000" or "max 100000", in microseconds
    if (parts.size() == 2) take_quota(limits, to_integer(parts[0]), to_integer(parts[1]), cpu);
    take_memory(limits, tree.number(memory), memory);
  }
}

void read_v1_cpu(LimitFacts& limits, const FileTree& tree, const std::string& mount, const std::string& group) {
  for (const std::string& at : upwards(group)) {
    const std::string file = mount + at + "/cpu.cfs_quota_us";
    take_quota(limits, tree.number(file), tree.number(mount + at + "/cpu.cfs_period_us"), file);
  }
}

void read_v1_memory(LimitFacts& limits, const FileTree& tree, const std::string& mount, const std::string& group) {
  for (const std::string& at : upwards(group)) {
    const std::string file = mount + at + "/memory.limit_in_bytes";
    take_memory(limits, tree.number(file), file);
  }
}

}  // namespace

LimitFacts detect_limits(const FileTree& tree) {
  LimitFacts limits;
  const std::string mount = "sys/fs/cgroup";
  const std::string groups = tree.read("proc/self/cgroup").text;
  for (size_t begin = 0; begin < groups.size();) {  // "4:cpu,cpuacct:/a/b", "0::/a/b"
    const size_t end = std::min(groups.find('\n', begin), groups.size());
    const std::string line = groups.substr(begin, end - begin);
    begin = end + 1;
    const size_t one = line.find(':'), two = line.find(':', one + 1);
    if (one == std::string::npos || two == std::string::npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1), group = line.substr(two + 1);
    auto is = [&](const char* name) {
      return ("," + controllers + ",").find("," + std::string(name) + ",") != std::string::npos;
    };
    if (controllers.empty()) {
      read_v2(limits, tree, mount, group);
      read_v2(limits, tree, mount + "/unified", group);  // where v1 and v2 are mounted side by side
    }
    if (is("cpu")) {
      read_v1_cpu(limits, tree, mount + "/" + controllers, group);
      if (controllers != "cpu") read_v1_cpu(limits, tree, mount + "/cpu", group);
    }
    if (is("memory")) read_v1_memory(limits, tree, mount + "/" + controllers, group);
  }
  const auto status = tree.fields("proc/self/status", {"Cpus_allowed_list", "Mems_allowed_list"});
  if (const auto at = status.find("Cpus_allowed_list"); at != status.end()) limits.cpus = parse_list(at->second);
  if (const auto at = status.find("Mems_allowed_list"); at != status.end())
    limits.memory_nodes = parse_list(at->second);
  return limits;
}

}  // namespace hpqf::device::machine
