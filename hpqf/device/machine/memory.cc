#include "hpqf/device/machine/memory.h"

namespace hpqf::device::machine {
namespace {

int64_t kib(const FileTree::Fields& fields, const char* key) {  // "24684092 kB"
  const auto at = fields.find(key);
  if (at == fields.end()) return 0;
  return to_integer(at->second.substr(0, at->second.find(' '))).value_or(0) * 1024;
}

std::string chosen(const std::string& text) {  // "always [madvise] never"
  const size_t open = text.find('['), close = text.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

}  // namespace

MemoryFacts detect_memory(const FileTree& tree) {
  MemoryFacts facts;
  const auto info = tree.fields("proc/meminfo", {"MemTotal", "MemAvailable", "HugePages_Total", "Hugepagesize"});
  facts.total_bytes = kib(info, "MemTotal");
  facts.available_bytes = kib(info, "MemAvailable");
  facts.huge_pages = kib(info, "HugePages_Total") / 1024;  // a count, without unit
  facts.huge_page_bytes = kib(info, "Hugepagesize");
  facts.transparent_huge_pages = chosen(tree.line("sys/kernel/mm/transparent_hugepage/enabled").value_or(""));

  const std::string nodes = "sys/devices/system/node/";
  for (int id : parse_list(tree.line(nodes + "online").value_or(""))) {
    const std::string folder = nodes + "node" + std::to_string(id) + "/",
                      key = "Node " + std::to_string(id) + " MemTotal";
    facts.nodes.push_back({id, parse_list(tree.line(folder + "cpulist").value_or("")),
                           kib(tree.fields(folder + "meminfo", {key}), key.c_str())});
  }
  return facts;
}

}  // namespace hpqf::device::machine
