// What this CPU can do.
#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "hpqf/device/cpuid.h"
#include "hpqf/device/device.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <array>
#include <cstring>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace hpqf::device {
namespace {

#if defined(__x86_64__)

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);  // leaves zeros when there is no such leaf
  return r;
}

uint64_t read_xcr0() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

CpuFeatures detect_features() {
  CpuidWords words;
  words.leaf1_ecx = cpuid(1).ecx;
  const Registers leaf7 = cpuid(7);
  words.leaf7_ebx = leaf7.ebx;
  words.leaf7_ecx = leaf7.ecx;
  words.leaf7_edx = leaf7.edx;
  if (leaf7.eax >= 1) words.leaf7_1_eax = cpuid(7, 1).eax;
  if (words.leaf1_ecx >> 27 & 1u) words.xcr0 = read_xcr0();  // xgetbv faults without OSXSAVE
  return decode_x86(words);
}

std::string detect_brand() {
  std::array<char, 49> text{};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i);
    std::memcpy(text.data() + 16 * i, &r, 16);
  }
  return text.data();
}

#else

CpuFeatures detect_features() {
  CpuFeatures f;
#if defined(__aarch64__) && defined(__linux__)
  f.neon_dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
  f.neon_dot = true;
#endif
  return f;
}

std::string detect_brand() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos && (line.starts_with("model name") || line.starts_with("Hardware")))
      return line.substr(colon + 2);
  }
  return "";
}

#endif

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "unknown CPU" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::string CpuFeatures::isa() const {
  const std::pair<bool, const char*> names[] = {{avx2, "avx2"},
                                                {fma, "fma"},
                                                {f16c, "f16c"},
                                                {avx512, "avx512"},
                                                {avx512_vnni, "avx512_vnni"},
                                                {avx_vnni, "avx_vnni"},
                                                {avx512_bf16, "avx512_bf16"},
                                                {avx512_fp16, "avx512_fp16"},
                                                {amx_bf16, "amx_bf16"},
                                                {amx_int8, "amx_int8"},
                                                {neon_dot, "neon_dot"}};
  std::string text;
  for (const auto& [has, name] : names) {
    if (!has) continue;
    if (!text.empty()) text += '+';
    text += name;
  }
  return text.empty() ? "baseline" : text;
}

const CpuFeatures& cpu() {
  static const CpuFeatures detected = [] {
    CpuFeatures f = detect_features();
    f.brand = trimmed(detect_brand());
    f.logical_cores = std::max(1u, std::thread::hardware_concurrency());
    return f;
  }();
  return detected;
}

}  // namespace hpqf::device
