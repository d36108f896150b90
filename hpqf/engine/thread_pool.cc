// The core's parallel_for on torch's own threads. This file alone is compiled with OpenMP, whose library torch brings.
#include "hpqf/engine/thread_pool.h"

#include <ATen/Parallel.h>

#ifndef _OPENMP
#error "compile with OpenMP: without it at::parallel_for, a template in torch's headers, runs on one thread"
#endif

namespace hpqf::engine {

void torch_parallel(int64_t begin, int64_t end, int64_t grain, const base::RangeBody& body) {
  at::parallel_for(begin, end, grain, body);
}

}  // namespace hpqf::engine
