#include "hpqf/base/parallel.h"

namespace hpqf::base {
namespace {
void serial(int64_t begin, int64_t end, int64_t, const RangeBody& body) {
  if (begin < end) body(begin, end);
}
ParallelBackend g_backend = &serial;
}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain, const RangeBody& body) {
  if (end - begin <= grain) return serial(begin, end, grain, body);
  g_backend(begin, end, grain, body);
}
void set_parallel_backend(ParallelBackend backend) { g_backend = backend ? backend : &serial; }

}  // namespace hpqf::base
