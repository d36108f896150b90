// Memory of a machine: size, huge pages, NUMA nodes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/machine/file_tree.h"

namespace hpqf::device::machine {

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  // empty: memory alone
  int64_t bytes = 0;
};

struct MemoryFacts {
  int64_t total_bytes = 0, available_bytes = 0;  // 0: unknown
  std::string transparent_huge_pages;            // "always", "madvise", "never"; "" where there is no such file
  int64_t huge_pages = 0, huge_page_bytes = 0;   // set aside beforehand (hugetlbfs)
  std::vector<NumaNode> nodes;
};

HPQF_API MemoryFacts detect_memory(const FileTree& tree);

}  // namespace hpqf::device::machine
