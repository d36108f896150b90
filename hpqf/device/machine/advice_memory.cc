// Memory limits, huge pages, NUMA.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/device/machine/advice.h"

namespace hpqf::device::machine {
namespace {

double gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

// The nodes whose CPUs this process may use.
std::vector<const NumaNode*> used_nodes(const MachineFacts& facts) {
  std::vector<const NumaNode*> used;
  const auto& allowed = facts.limits.cpus;
  for (const NumaNode& node : facts.memory.nodes) {
    const bool any = std::any_of(node.cpus.begin(), node.cpus.end(), [&](int cpu) {
      return allowed.empty() || std::find(allowed.begin(), allowed.end(), cpu) != allowed.end();
    });
    if (any) used.push_back(&node);
  }
  return used;
}

}  // namespace

void advise_memory(const MachineFacts& facts, const RunSetup& setup, std::vector<Finding>& findings) {
  const auto& limit = facts.limits.memory_bytes;
  if (limit && *limit < facts.memory.total_bytes)
    findings.push_back({Severity::note, "memory-limit",
                        fmt::format("memory limited to {:.1f} GiB of {:.1f} ({})", gib(*limit),
                                    gib(facts.memory.total_bytes), facts.limits.memory_file),
                        "a process that needs more is killed without a message of its own",
                        "choose --batch-size by the limit, or raise it"});
  if (facts.memory.transparent_huge_pages == "never" && facts.memory.huge_pages == 0)
    findings.push_back(
        {Severity::warning, "no-huge-pages", "transparent huge pages are off",
         "large tensors miss the TLB on every 4 KiB, and fresh memory is faulted in page by page",
         "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, then THP_MEM_ALLOC_ENABLE=1 for torch"});
  const auto nodes = used_nodes(facts);
  if (nodes.size() > 1 && setup.threads > 1) {
    size_t smallest = nodes.front()->cpus.size();
    for (const NumaNode* node : nodes) smallest = std::min(smallest, node->cpus.size());
    const int id = nodes.front()->id;
    findings.push_back(
        {Severity::warning, "numa-unbound",
         fmt::format("{} threads may run on {} NUMA nodes", setup.threads, nodes.size()),
         "a tensor lies on the node that first touched it: threads of the others read it over the socket link, "
         "and the scheduler moves threads away from their memory",
         fmt::format("one process a node: numactl --cpunodebind={} --membind={} hpqf ... --threads {}; for "
                     "one process on all: numactl --interleave=all",
                     id, id, std::max<size_t>(1, smallest / std::max(1, facts.cpu.threads_per_core)))});
  }
}

}  // namespace hpqf::device::machine
