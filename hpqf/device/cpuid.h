// x86 feature words and their meaning, apart from the instruction that reads them, so that recorded words of other CPUs
// can be tested here.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/device/device.h"

namespace hpqf::device {

// Zero where the CPU has no such leaf. Bit numbers: Intel SDM vol. 2A, CPUID; vol. 1, 13.3 (XCR0).
struct CpuidWords {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // register state that the operating system saves; 0 without OSXSAVE
};

// A feature is reported only when the operating system saves its registers too.
HPQF_API CpuFeatures decode_x86(const CpuidWords& words);

}  // namespace hpqf::device
