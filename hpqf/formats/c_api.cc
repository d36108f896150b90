#include "hpqf/formats/c_api.h"

#include "hpqf/base/c_api.h"
#include "hpqf/formats/format.h"

using hpqf::base::c_guarded;
namespace formats = hpqf::formats;

extern "C" int hpqf_encode_n(const char* format, const float* x, uint32_t* codes, int64_t n) {
  return c_guarded([&] {
    const hpqf::Format f = formats::parse_format(format);
    for (int64_t i = 0; i < n; ++i) codes[i] = formats::encode(f, x[i]);
  });
}

extern "C" int hpqf_decode_n(const char* format, const uint32_t* codes, float* x, int64_t n) {
  return c_guarded([&] {
    const hpqf::Format f = formats::parse_format(format);
    for (int64_t i = 0; i < n; ++i) x[i] = formats::decode(f, codes[i]);
  });
}
