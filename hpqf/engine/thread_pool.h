#pragma once
#include "hpqf/base/parallel.h"

namespace hpqf::engine {

// A base::ParallelBackend.
void torch_parallel(int64_t begin, int64_t end, int64_t grain, const base::RangeBody& body);

}  // namespace hpqf::engine
