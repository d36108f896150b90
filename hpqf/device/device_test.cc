#include "hpqf/device/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "hpqf/device/cpuid.h"

namespace hpqf::device {
namespace {

constexpr uint32_t bit(int n) { return uint32_t{1} << n; }

// What the CPU of a Sapphire Rapids host reports, reduced to the bits that are read.
CpuidWords sapphire_rapids() {
  CpuidWords words;
  words.leaf1_ecx = bit(12) | bit(27) | bit(28) | bit(29);
  words.leaf7_ebx = bit(5) | bit(16) | bit(17) | bit(30) | bit(31);
  words.leaf7_ecx = bit(11);
  words.leaf7_edx = bit(22) | bit(23) | bit(24) | bit(25);
  words.leaf7_1_eax = bit(4) | bit(5);
  words.xcr0 = 0x602e7;
  return words;
}

TEST(Cpuid, SapphireRapids) {
  EXPECT_EQ(decode_x86(sapphire_rapids()).isa(),
            "avx2+fma+f16c+avx512+avx512_vnni+avx_vnni+avx512_bf16+avx512_fp16+amx_bf16+amx_int8");
}

TEST(Cpuid, WhatTheSystemDoesNotSaveIsNotThere) {
  CpuidWords words = sapphire_rapids();
  words.xcr0 = 0xe7;  // no tile state
  EXPECT_EQ(decode_x86(words).isa(), "avx2+fma+f16c+avx512+avx512_vnni+avx_vnni+avx512_bf16+avx512_fp16");
  words.xcr0 = 0x67;  // ZMM16-31 missing
  EXPECT_EQ(decode_x86(words).isa(), "avx2+fma+f16c+avx_vnni");
  words.xcr0 = 0x3;  // SSE only
  EXPECT_EQ(decode_x86(words).isa(), "baseline");
  words = sapphire_rapids();
  words.leaf1_ecx &= ~bit(27);  // OSXSAVE off
  EXPECT_EQ(decode_x86(words).isa(), "baseline");
}

TEST(Cpuid, PartialAvx512IsNone) {
  for (int n : {16, 17, 30, 31}) {  // F, DQ, BW, VL
    CpuidWords words = sapphire_rapids();
    words.leaf7_ebx &= ~bit(n);
    const CpuFeatures f = decode_x86(words);
    EXPECT_FALSE(f.avx512 || f.avx512_vnni || f.avx512_bf16 || f.avx512_fp16) << n;
    EXPECT_TRUE(f.avx2 && f.avx_vnni && f.amx_bf16) << n;
  }
}

TEST(Cpuid, HaswellClass) {
  CpuidWords words;
  words.leaf1_ecx = bit(12) | bit(27) | bit(28) | bit(29);
  words.leaf7_ebx = bit(5);
  words.xcr0 = 0x7;
  EXPECT_EQ(decode_x86(words).isa(), "avx2+fma+f16c");
}

// The kernel's own reading of the same CPU: an independent oracle.
TEST(Cpu, AgreesWithProcCpuinfo) {
#if !defined(__x86_64__) || !defined(__linux__)
  GTEST_SKIP() << "compares x86 flags of /proc/cpuinfo";
#endif
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  std::string brand;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) brand = line.substr(colon + 2);
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(colon + 2));
    for (std::string word; words >> word;) flags.insert(word);
    break;
  }
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  auto has = [&](const char* flag) { return flags.count(flag) > 0; };
  const CpuFeatures& f = cpu();
  EXPECT_EQ(f.avx2, has("avx2"));
  EXPECT_EQ(f.fma, has("fma"));
  EXPECT_EQ(f.f16c, has("f16c"));
  EXPECT_EQ(f.avx512, has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq"));
  EXPECT_EQ(f.avx512_vnni, has("avx512_vnni"));
  EXPECT_EQ(f.avx_vnni, has("avx_vnni"));
  EXPECT_EQ(f.avx512_bf16, has("avx512_bf16"));
  EXPECT_EQ(f.avx512_fp16, has("avx512_fp16"));
  EXPECT_EQ(f.amx_bf16, has("amx_bf16"));
  EXPECT_EQ(f.amx_int8, has("amx_int8"));
  EXPECT_FALSE(f.neon_dot);
  if (!brand.empty()) {
    EXPECT_EQ(f.brand, brand.substr(0, brand.find_last_not_of(' ') + 1));
  }
}

TEST(Cpu, IsDetectedOnce) {
  EXPECT_EQ(&cpu(), &cpu());
  EXPECT_EQ(cpu().logical_cores, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  EXPECT_FALSE(cpu().brand.empty());
  EXPECT_FALSE(cpu().isa().empty());
}

TEST(CpuNative, EachAnswerDependsOnItsInstructions) {
  const CpuFeatures none, avx2{.avx2 = true}, vnni{.avx2 = true, .avx512 = true, .avx512_vnni = true};
  EXPECT_TRUE(cpu_native(Format::fp32, none).possible);
  EXPECT_FALSE(cpu_native(Format::bf16, vnni).possible);
  EXPECT_EQ(cpu_native(Format::bf16, vnni).reason, "cpu has no avx512_bf16 or amx_bf16");
  EXPECT_TRUE(cpu_native(Format::bf16, {.avx512_bf16 = true}).possible);
  EXPECT_TRUE(cpu_native(Format::bf16, {.amx_bf16 = true}).possible);
  EXPECT_TRUE(cpu_native(Format::fp16, {.avx512_fp16 = true}).possible);
  EXPECT_FALSE(cpu_native(Format::fp16, {.f16c = true}).possible) << "f16c converts, it does not multiply";
  EXPECT_FALSE(cpu_native(Format::int8, avx2).possible);
  EXPECT_TRUE(cpu_native(Format::int8, vnni).possible);
  EXPECT_TRUE(cpu_native(Format::int8, {.neon_dot = true}).possible);
  EXPECT_TRUE(cpu_native(Format::int7, avx2).possible);
  EXPECT_FALSE(cpu_native(Format::int7, none).possible);
  EXPECT_TRUE(cpu_native(Format::int12, avx2).possible);
}

TEST(CpuNative, EveryRefusalHasAReasonAndNothingElseHas) {
  for (const auto& info : formats::all_formats())
    for (const CpuFeatures& f : {CpuFeatures{}, CpuFeatures{.avx2 = true}, cpu(), decode_x86(sapphire_rapids())}) {
      const NativeAnswer answer = cpu_native(info.format, f);
      EXPECT_EQ(answer.reason.empty(), answer.possible) << info.name;
    }
  for (const auto& info : formats::all_formats())
    EXPECT_EQ(cpu_native(info.format).possible, cpu_native(info.format, cpu()).possible) << info.name;
}

}  // namespace
}  // namespace hpqf::device
