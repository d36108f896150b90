// Numbers as people read them.
#pragma once
#include <string>

#include "hpqf/base/export.h"

namespace hpqf::observe {

HPQF_API std::string human_flops(double flops);      // "950 FLOP", "1.23 TFLOP": powers of 1000, three digits
HPQF_API std::string human_bytes(double bytes);      // "512 B", "1.50 GiB": powers of 1024
HPQF_API std::string human_seconds(double seconds);  // "12.3 us", "4.56 ms", "7.89 s", "12 min 3 s", "3 h 20 min"
HPQF_API std::string human_count(double count);      // "950", "272 k", "11.7 M"

// Percent with one decimal; "<0.1" for what would round to 0.0, "0" for zero itself.
HPQF_API std::string percent(double share);

}  // namespace hpqf::observe
