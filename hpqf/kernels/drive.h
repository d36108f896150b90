// What surrounds the inner loops: blocks, scales, counts and threads. One text for every instruction set.
// Exported for the tests, which also bind it to vector widths that this CPU lacks.
#pragma once
#include "hpqf/kernels/leaves.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::kernels {

HPQF_API RoundStats drive_round(const Leaves& leaves, const float* in, float* out, BlockLayout layout,
                                const BlockFormat& format, const RoundOptions& options);
HPQF_API RoundStats drive_int8(const Leaves& leaves, const float* in, int8_t* codes, float* scales, BlockLayout layout,
                               const BlockFormat& format);
HPQF_API int64_t drive_scale_and_count(const Leaves& leaves, float* data, int64_t n, float factor);
HPQF_API uint64_t drive_fingerprint(const Leaves& leaves, const void* data, int64_t bytes);

}  // namespace hpqf::kernels
