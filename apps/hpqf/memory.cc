#include "apps/hpqf/memory.h"

#include <malloc.h>

namespace hpqf::app {

// glibc gives every block above 32 MB, and the top of a heap, back to the system at once; the next step takes the same
// sizes again and faults every page anew.
void keep_freed_memory() {
  constexpr int kAlways = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kAlways);
  mallopt(M_TRIM_THRESHOLD, kAlways);
}

}  // namespace hpqf::app
