#include "hpqf/kernels/c_api.h"

#include "hpqf/base/c_api.h"
#include "hpqf/kernels/quantize.h"

extern "C" int hpqf_quantize_dequantize(const char* block_format, const float* x, float* out, int64_t outer,
                                        int64_t axis, int64_t inner, int64_t* nonfinite, int64_t* overflow) {
  return hpqf::base::c_guarded([&] {
    const auto format = hpqf::formats::parse_block_format(block_format);
    const auto stats = hpqf::kernels::quantize_dequantize(x, out, {outer, axis, inner}, format);
    if (nonfinite) *nonfinite = stats.nonfinite_in;
    if (overflow) *overflow = stats.overflow;
  });
}
