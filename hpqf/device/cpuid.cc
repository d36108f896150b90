#include "hpqf/device/cpuid.h"

namespace hpqf::device {

CpuFeatures decode_x86(const CpuidWords& words) {
  auto bit = [](uint32_t word, int n) { return (word >> n & 1u) != 0; };
  auto saved = [&](uint64_t mask) { return (words.xcr0 & mask) == mask; };
  const bool osxsave = bit(words.leaf1_ecx, 27);
  const bool ymm = osxsave && saved(0x6);        // XMM, YMM
  const bool zmm = ymm && saved(0xe6);           // ... and mask registers, ZMM high halves, ZMM16-31
  const bool tiles = osxsave && saved(0x60000);  // TILECFG, TILEDATA

  CpuFeatures f;
  f.avx2 = ymm && bit(words.leaf7_ebx, 5);
  f.fma = ymm && bit(words.leaf1_ecx, 12);
  f.f16c = ymm && bit(words.leaf1_ecx, 29);
  f.avx512 = zmm && bit(words.leaf7_ebx, 16) && bit(words.leaf7_ebx, 17) && bit(words.leaf7_ebx, 30) &&
             bit(words.leaf7_ebx, 31);
  f.avx512_vnni = f.avx512 && bit(words.leaf7_ecx, 11);
  f.avx512_fp16 = f.avx512 && bit(words.leaf7_edx, 23);
  f.avx512_bf16 = f.avx512 && bit(words.leaf7_1_eax, 5);
  f.avx_vnni = ymm && bit(words.leaf7_1_eax, 4);
  const bool amx = tiles && bit(words.leaf7_edx, 24);
  f.amx_bf16 = amx && bit(words.leaf7_edx, 22);
  f.amx_int8 = amx && bit(words.leaf7_edx, 25);
  return f;
}

}  // namespace hpqf::device
