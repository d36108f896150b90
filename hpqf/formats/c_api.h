// The codec over plain C types. See hpqf/base/c_api.h for what is returned.
#pragma once
#include <cstdint>

#include "hpqf/base/export.h"

extern "C" {

// codes[i] = encode(format, x[i]), rounded to nearest even.
HPQF_API int hpqf_encode_n(const char* format, const float* x, uint32_t* codes, int64_t n);
// x[i] = decode(format, codes[i]).
HPQF_API int hpqf_decode_n(const char* format, const uint32_t* codes, float* x, int64_t n);

}  // extern "C"
