// A format plus how its scales are shared.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "hpqf/formats/format.h"

namespace hpqf::formats {

// Which elements share one scale. `axis` is the contraction axis of the GEMM the operand takes part in.
enum class BlockShape : uint8_t {
  none,    // no scale (fp32, tf32, bf16, fp16)
  tensor,  // one scale for the tensor
  row,     // one scale for each line along the axis
  vector,  // 1xN: N consecutive elements along the axis; the last block of a line may be shorter
};
enum class ScaleType : uint8_t {
  none,
  fp32,
  pow2,  // power of two, rounded up so that nothing overflows
};

struct BlockFormat {
  Format format = Format::fp32;
  BlockShape shape = BlockShape::none;
  int block = 0;  // N of `vector`
  ScaleType scale = ScaleType::none;
  bool operator==(const BlockFormat&) const = default;
};

// The default blocks: none for 16 bits floating and wider; fp8 one fp32 scale per tensor; int16, int12, int8, int7 1x64
// with fp32 scales; int4 1x32.
HPQF_API BlockFormat default_block(Format format);

// Text form: "bf16", "int8" (default blocks), or a shape and a scale in brackets, either left out when it is the
// default: "int8[1x128]", "fp8_e4m3[row]", "int8[tensor,pow2]", "int8[pow2]", "fp8_e5m2[none]". Case does not matter.
// Error with what is allowed.
HPQF_API BlockFormat parse_block_format(std::string_view text);
HPQF_API std::string to_string(const BlockFormat& format);  // shortest text that parses back to the same value

// Error unless the parts fit together: fp32, tf32 and bf16 take no scale (they have the range of fp32), integers need
// one, a scale type goes with a shape, N of `vector` is 1 to 65536.
HPQF_API void check(const BlockFormat& format);

// The scale of a block whose largest magnitude is `amax`: real = code * scale, code = encode(real / scale), in fp32.
// amax / largest, at least the smallest normal fp32 (2^-126): zero and denormal amax give a finite positive scale, and
// an all-zero block decodes to exact zeros. `pow2` goes up to the next power of two. A non-finite amax gives NaN. 1 for
// a format without scale.
HPQF_API float block_scale(const BlockFormat& format, float amax);

}  // namespace hpqf::formats

namespace hpqf {
using formats::BlockFormat;
}
