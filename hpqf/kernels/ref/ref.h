// The definition of the rounding kernels, element by element: oracle of the tests and last fallback.
#pragma once
#include "hpqf/kernels/quantize.h"

namespace hpqf::kernels::ref {

RoundStats round(const float* in, float* out, BlockLayout layout, const BlockFormat& format,
                 const RoundOptions& options);
RoundStats quantize_int8(const float* in, int8_t* codes, float* scales, BlockLayout layout, const BlockFormat& format);
int64_t scale_and_count(float* data, int64_t n, float factor);
uint64_t fingerprint(const void* data, int64_t bytes);

}  // namespace hpqf::kernels::ref
