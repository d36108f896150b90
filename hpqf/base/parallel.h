// parallel_for of the core. The engine plugs torch's own thread pool in, so that no second pool ever runs in one
// process.
#pragma once
#include <cstdint>
#include <functional>

#include "hpqf/base/export.h"

namespace hpqf::base {

// Runs body(first, last) over disjoint pieces that cover [begin, end). `grain` is the smallest piece worth a thread.
using RangeBody = std::function<void(int64_t first, int64_t last)>;
using ParallelBackend = void (*)(int64_t begin, int64_t end, int64_t grain, const RangeBody& body);

HPQF_API void parallel_for(int64_t begin, int64_t end, int64_t grain, const RangeBody& body);

// Serial until somebody plugs a pool in. Not thread safe: call once at start-up.
HPQF_API void set_parallel_backend(ParallelBackend backend);

}  // namespace hpqf::base
