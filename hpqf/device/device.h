// What this machine's CPU can do in which format. Devices in general: database.h and resolve.h.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"

namespace hpqf::device {

struct HPQF_API CpuFeatures {
  std::string brand;  // from cpuid / /proc/cpuinfo
  int logical_cores = 1;
  bool avx2 = false, fma = false, f16c = false, avx512 = false /* F+BW+VL+DQ */, avx512_vnni = false, avx_vnni = false,
       avx512_bf16 = false, avx512_fp16 = false, amx_bf16 = false, amx_int8 = false, neon_dot = false;
  std::string isa() const;  // "avx2+fma+f16c", for benchmark tables and test output; "baseline" when none of these
};
HPQF_API const CpuFeatures& cpu();  // detected once

// A format that is measured less than this many times as fast as fp32 is not worth its rounding: fp32 itself varies by
// as much from run to run on a quiet machine.
inline constexpr double kWorthwhile = 1.05;

// Could arithmetic in `format` be fast on this CPU at all? Only a hint: the engine still measures before it chooses.
struct NativeAnswer {
  bool possible = false;
  std::string reason;  // why not, in words for the audit: "cpu has no avx512_bf16 or amx_bf16"
};
HPQF_API NativeAnswer cpu_native(Format format, const CpuFeatures& cpu);
HPQF_API NativeAnswer cpu_native(Format format);  // this CPU

}  // namespace hpqf::device
