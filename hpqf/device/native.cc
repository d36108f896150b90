// Which formats a CPU multiplies faster than fp32, from its instruction sets alone.
#include "hpqf/device/device.h"

namespace hpqf::device {

NativeAnswer cpu_native(Format format, const CpuFeatures& cpu) {
  const bool dot8 = cpu.avx512_vnni || cpu.avx_vnni || cpu.amx_int8 || cpu.neon_dot;
  auto answer = [](bool possible, const char* why_not) { return NativeAnswer{possible, possible ? "" : why_not}; };
  switch (format) {
    case Format::fp32:
      return {true, ""};
    case Format::tf32:
      return {false, "no cpu multiplies tf32"};
    case Format::bf16:
      return answer(cpu.avx512_bf16 || cpu.amx_bf16, "cpu has no avx512_bf16 or amx_bf16");
    case Format::fp16:
      return answer(cpu.avx512_fp16, "cpu has no avx512_fp16");
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
      return {false, "no cpu multiplies fp8"};
    // Two products of 16-bit symmetric codes, 2 * 32767^2, fill an int32: a sum over a block cannot be kept.
    case Format::int16:
      return {false, "sums of int16 products do not fit int32 lanes; int12 is the widest that does"};
    case Format::int12:
      return answer(cpu.avx2, "cpu has no avx2 (16-bit multiply-add into 32 bits)");
    // vpmaddubsw adds two u8 x s8 products in 16 bits: 2 * 255 * 127 = 64770 saturates, with 7-bit codes 2 * 127 * 127
    // = 32258 fits.
    case Format::int8:
      return answer(dot8,
                    "cpu has no vnni, amx_int8 or neon dot product; on avx2 int7 is the widest that does not saturate");
    case Format::int7:
      return answer(dot8 || cpu.avx2, "cpu has no avx2, vnni or dot product");
    case Format::int4:
      return {false, "no cpu multiplies int4"};
  }
  return {false, "unknown format"};
}

NativeAnswer cpu_native(Format format) { return cpu_native(format, cpu()); }

}  // namespace hpqf::device
