// The rounding kernel over plain C types. See hpqf/base/c_api.h for what is returned.
#pragma once
#include <cstdint>

#include "hpqf/base/export.h"

extern "C" {

// quantize_dequantize of x[outer][axis][inner], to nearest even. `block_format` as parse_block_format reads it. The
// counts may be null.
HPQF_API int hpqf_quantize_dequantize(const char* block_format, const float* x, float* out, int64_t outer, int64_t axis,
                                      int64_t inner, int64_t* nonfinite, int64_t* overflow);

}  // extern "C"
