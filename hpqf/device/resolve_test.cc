#include "hpqf/device/resolve.h"

#include <gtest/gtest.h>

#include "hpqf/device/cpuid.h"
#include "hpqf/device/fixture_test.h"
#include "hpqf/device/share.h"

namespace hpqf::device {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

Facts ampere(const std::string& id = "a100") {
  return Facts(id)
      .text("identity.vendor", "nvidia")
      .text("identity.architecture", "Ampere")
      .text("identity.kind", "gpu")
      .number("peak.fp32.dense", 19.5)
      .number("peak.bf16.dense", 312)
      .number("peak.fp16.dense", 312)
      .number("peak.int8.dense", 624)
      .flag("support.bf16.matmul", true)
      .flag("support.fp16.matmul", true)
      .flag("support.int8.matmul", true)
      .flag("support.fp8_e4m3.matmul", false);
}

Resolution resolved(Format format, const DeviceFacts& device, const ResolveOptions& options = {}) {
  return resolve(format, device, AchievableFactors({device}), options);
}

TEST(Resolve, NativeNeedsAGain) {
  const Resolution bf16 = resolved(Format::bf16, ampere());
  EXPECT_EQ(bf16.kind, Kind::native);
  EXPECT_EQ(bf16.baseline, Format::fp32);
  EXPECT_NEAR(*bf16.gain, 16, 0.01);
  const Resolution int8 = resolved(Format::int8, ampere());
  EXPECT_EQ(int8.kind, Kind::native);
  EXPECT_EQ(int8.baseline, Format::bf16);
  EXPECT_NEAR(*int8.gain, 2, 0.01);
  EXPECT_EQ(resolved(Format::fp32, ampere()).kind, Kind::native);

  const Resolution slow = resolved(Format::int8, ampere().number("peak.int8.dense", 312 * 1.14));
  EXPECT_EQ(slow.kind, Kind::refused);
  EXPECT_CONTAINS(slow.reason, "1.14 times the rate of bf16, under the 1.15");
  EXPECT_EQ(resolved(Format::int8, ampere().number("peak.int8.dense", 312 * 1.16)).kind, Kind::native);
  EXPECT_EQ(resolved(Format::int8, ampere().number("peak.int8.dense", 312 * 1.14), {.least_gain = 1.1}).kind,
            Kind::native);
}

TEST(Resolve, NoArithmeticIsEmulatedAtTheRateOfFp32) {
  const Resolution fp8 = resolved(Format::fp8_e4m3, ampere());
  EXPECT_EQ(fp8.kind, Kind::emulated);
  EXPECT_CONTAINS(fp8.reason, "a100 has no fp8_e4m3 arithmetic");
  EXPECT_NEAR(fp8.rate->tera, 19.5 * AchievableFactors::kDefault, 1e-9);
  EXPECT_EQ(resolved(Format::bf16, ampere().flag("peak.bf16.emulated", true)).kind, Kind::emulated);
}

TEST(Resolve, AnFp8OfOtherRangeIsAnotherFormat) {
  const Facts cdna = ampere("mi300x").flag("support.fp8_e4m3.matmul", true).number("peak.fp8_e4m3.dense", 624);
  EXPECT_EQ(resolved(Format::fp8_e4m3, Facts(cdna).number("support.fp8.e4m3_max", 448)).kind, Kind::native);
  const Resolution fnuz = resolved(Format::fp8_e4m3, Facts(cdna).number("support.fp8.e4m3_max", 240));
  EXPECT_EQ(fnuz.kind, Kind::emulated);
  EXPECT_CONTAINS(fnuz.reason, "reaches 240, that of HPQF 448");
}

TEST(Resolve, WhatIsNotKnownIsNotAssumed) {
  const Resolution int4 = resolved(Format::int4, ampere());
  EXPECT_EQ(int4.kind, Kind::refused);
  EXPECT_EQ(int4.rate, std::nullopt);
  EXPECT_CONTAINS(int4.reason, "not known");
  const Resolution no_rate = resolved(Format::int4, ampere().flag("support.int4.matmul", true));
  EXPECT_EQ(no_rate.kind, Kind::refused);
  EXPECT_CONTAINS(no_rate.reason, "calibrate");
}

TEST(Resolve, RatesPreferWhatWasMeasured) {
  const DeviceFacts measured = ampere().number("calibrated.best.bf16", 271);
  const AchievableFactors factors({measured});
  EXPECT_EQ(expected_rate(Format::bf16, measured, factors)->source, RateSource::measured);
  EXPECT_EQ(expected_rate(Format::bf16, measured, factors)->tera, 271);
  const auto quoted = expected_rate(Format::int8, measured, factors);
  EXPECT_EQ(quoted->source, RateSource::quoted);
  EXPECT_NEAR(quoted->tera, 624 * 271 / 312.0, 1e-9) << "what the architecture was measured at in another format";
  EXPECT_CONTAINS(quoted->basis, "architecture Ampere");
  const ResolveOptions here{.calibrated = {{Format::bf16, 250}}};
  EXPECT_EQ(expected_rate(Format::bf16, measured, factors, here)->source, RateSource::calibrated);
  EXPECT_EQ(expected_rate(Format::bf16, measured, factors, here)->tera, 250);
  // The gain compares quoted with quoted, although bf16 has a measured rate.
  EXPECT_NEAR(*resolve(Format::int8, measured, factors).gain, 2, 1e-9);
}

TEST(Resolve, AUsersMeasurementCountsAsCalibrated) {
  DeviceFacts device = ampere();
  device.lay_over(Facts("a100").number("calibrated.best.bf16", 123));
  const auto rate = expected_rate(Format::bf16, device, {});
  EXPECT_EQ(rate->source, RateSource::calibrated);
  EXPECT_EQ(rate->tera, 123);
}

TEST(Resolve, MeasuredCurveServesWhereNoBestIsGiven) {
  const DeviceFacts device = ampere().number("calibrated.gemm.bf16.4096", 200).number("calibrated.gemm.bf16.8192", 240);
  EXPECT_EQ(expected_rate(Format::bf16, device, {})->tera, 240);
}

TEST(Resolve, SoftwareThatIsTooOldIsRefused) {
  const DeviceFacts hopper = ampere("h100")
                                 .flag("support.fp8_e4m3.matmul", true)
                                 .number("peak.fp8_e4m3.dense", 624)
                                 .text("support.library.cublaslt_fp8", "12.8")
                                 .text("software.min_torch", "2.1");
  EXPECT_EQ(resolved(Format::fp8_e4m3, hopper).kind, Kind::native) << "versions not given are not checked";
  EXPECT_EQ(resolved(Format::fp8_e4m3, hopper, {.libraries = {{"cublaslt", "12.10"}}}).kind, Kind::native);
  const Resolution old = resolved(Format::fp8_e4m3, hopper, {.libraries = {{"cublaslt", "12.7.9"}}});
  EXPECT_EQ(old.kind, Kind::refused);
  EXPECT_CONTAINS(old.reason, "cublaslt 12.7.9 is too old: h100 needs 12.8");
  EXPECT_EQ(resolved(Format::bf16, hopper, {.libraries = {{"torch", "2.0.1"}}}).kind, Kind::refused);
  const DeviceFacts volta = ampere("v100").text("software.max_torch", "2.7");
  EXPECT_EQ(resolved(Format::fp16, volta, {.libraries = {{"torch", "2.7.1+cu126"}}}).kind, Kind::native);
  EXPECT_CONTAINS(resolved(Format::fp16, volta, {.libraries = {{"torch", "2.8.0"}}}).reason, "2.7 was the last");
  DeviceFacts unserved = ampere("x").flag("support.torch.int8", false);
  EXPECT_CONTAINS(resolved(Format::int8, unserved).reason, "torch has no int8 product");
}

TEST(Resolve, VersionsCompareByNumber) {
  EXPECT_TRUE(older("12.8", "12.10"));
  EXPECT_FALSE(older("12.10", "12.8"));
  EXPECT_FALSE(older("12.8", "12.8"));
  EXPECT_FALSE(older("12.8.0", "12.8"));
  EXPECT_TRUE(older("12", "12.1"));
  EXPECT_FALSE(older("ROCm 6.0", "5.7"));
  EXPECT_FALSE(older("", ""));
}

TEST(AchievableFactors, NearestRelativeFirst) {
  const DeviceFacts a = ampere("a").number("calibrated.best.bf16", 0.8 * 312),
                    b = ampere("b").number("calibrated.best.bf16", 0.9 * 312);
  const DeviceFacts other =
      ampere("c").text("identity.architecture", "Hopper").number("calibrated.best.int8", 0.5 * 624);
  const AchievableFactors factors({a, b, other});
  EXPECT_NEAR(factors.factor(ampere("d"), "bf16").value, 0.85, 1e-9);
  EXPECT_NEAR(factors.factor(ampere("d"), "int8").value, 0.85, 1e-9) << "same architecture before same format";
  const DeviceFacts turing = ampere("e").text("identity.architecture", "Turing");
  EXPECT_NEAR(factors.factor(turing, "int8").value, 0.5, 1e-9) << "same vendor and format";
  EXPECT_NEAR(factors.factor(turing, "fp16").value, 0.8, 1e-9) << "same vendor";
  EXPECT_EQ(factors.factor(Facts().text("identity.vendor", "amd"), "bf16").value, AchievableFactors::kDefault);
}

TEST(Resolve, CpuAnswersAreThoseOfTheInstructionSets) {
  for (const auto& info : formats::all_formats()) {
    for (const CpuFeatures& f : {CpuFeatures{}, CpuFeatures{.avx2 = true}, cpu()}) {
      const Resolution r = resolve(info.format, f);
      EXPECT_EQ(r.kind, cpu_native(info.format, f).possible ? Kind::native : Kind::emulated) << info.name;
      EXPECT_FALSE(r.reason.empty());
      EXPECT_EQ(r.rate, std::nullopt) << "nothing was measured";
    }
  }
  const CpuFeatures avx2{.avx2 = true};
  EXPECT_EQ(resolve(Format::int7, avx2, {.calibrated = {{Format::fp32, 0.1}, {Format::int7, 0.2}}}).kind, Kind::native);
  EXPECT_EQ(resolve(Format::int7, avx2, {.calibrated = {{Format::fp32, 0.1}, {Format::int7, 0.11}}}).kind,
            Kind::refused);
  EXPECT_EQ(resolve(Format::bf16, avx2, {.calibrated = {{Format::fp32, 0.1}}}).rate->tera, 0.1);
}

TEST(Resolve, AnX86CpuOfTheDatabaseAnswersByItsInstructionSets) {
  Facts cpu =
      Facts("xeon").text("identity.kind", "cpu").number("peak.fp32.dense", 7).number("peak.fp16_vector.dense", 14);
  cpu.number("peak.int8.dense", 229).number("peak.bf16.dense", 114);
  const DeviceFacts sapphire =
      cpu.texts("support.cpu_isa", {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni",
                                    "avx512_fp16", "amx_tile", "amx_bf16"});
  EXPECT_EQ(x86_features(sapphire)->isa(), "avx2+fma+f16c+avx512+avx512_vnni+avx512_fp16+amx_bf16");
  EXPECT_EQ(resolved(Format::fp16, sapphire).kind, Kind::native) << "in vectors";
  EXPECT_NEAR(*resolved(Format::fp16, sapphire).gain, 2, 1e-9);
  EXPECT_EQ(resolved(Format::bf16, sapphire).kind, Kind::native);
  const DeviceFacts haswell = cpu.texts("support.cpu_isa", {"avx2", "fma", "f16c"});
  EXPECT_EQ(resolved(Format::int8, haswell).kind, Kind::emulated);
  EXPECT_CONTAINS(resolved(Format::bf16, haswell).reason, "cpu has no avx512_bf16 or amx_bf16");
  EXPECT_FALSE(x86_features(cpu.texts("support.cpu_isa", {"asimddp"})));
  EXPECT_FALSE(x86_features(Facts().texts("support.cpu_isa", {"avx2"}))) << "no cpu";
}

Facts partitioned() {
  return ampere()
      .number("units.count", 108)
      .number("units.boost_clock_mhz", 1410)
      .number("rate.bf16", 2048)
      .number("memory.capacity_gb", 80)
      .number("memory.bandwidth_gbs", 2039)
      .number("calibrated.best.bf16", 271)
      .number("power.tdp_w", 400)
      .number("power.min_w", 100)
      .texts("partition.profiles", {"1g.10gb", "7g.80gb"})
      .number("partition.slices", 7)
      .number("partition.units_per_slice", 14)
      .entry("partition.profile_slices", "1g.10gb", 1)
      .entry("partition.profile_slices", "7g.80gb", 7)
      .entry("partition.profile_memory_gb", "1g.10gb", 10)
      .entry("partition.profile_memory_gb", "7g.80gb", 80);
}

TEST(Share, APartitionHasItsShareOfUnitsAndMemory) {
  const DeviceFacts part = partition(partitioned(), "1g.10gb");
  EXPECT_NEAR(*part.number("peak.bf16.dense"), 312 * 14 / 108.0, 1e-9);
  EXPECT_EQ(part.number("units.count"), 14);
  EXPECT_EQ(part.number("memory.capacity_gb"), 10);
  EXPECT_NEAR(*part.number("memory.bandwidth_gbs"), 2039 / 8.0, 1e-9);
  EXPECT_EQ(part.find("peak.bf16.dense")->source->trust, Trust::derived);
  EXPECT_EQ(part.name(), "a100 (1g.10gb)");
  EXPECT_EQ(part.number("calibrated.best.bf16"), std::nullopt) << "measured on the whole";
  EXPECT_EQ(part.number("power.tdp_w"), std::nullopt);
  EXPECT_EQ(resolved(Format::bf16, part).kind, Kind::native);
  // The largest profile has 98 of 108 units.
  EXPECT_NEAR(*partition(partitioned(), "7g.80gb").number("peak.bf16.dense"), 312 * 98 / 108.0, 1e-9);
  EXPECT_CONTAINS(error_of([] { partition(partitioned(), "1g.5gb"); }), "1g.10gb, 7g.80gb");
  EXPECT_CONTAINS(error_of([] { partition(ampere(), "1g.5gb"); }), "no partition profiles");
}

TEST(Share, APowerLimitScalesClocksAndPeaks) {
  const DeviceFacts capped = power_capped(partitioned(), 200);
  EXPECT_NEAR(*capped.number("peak.bf16.dense"), 156, 1e-9);
  EXPECT_NEAR(*capped.number("units.boost_clock_mhz"), 705, 1e-9);
  EXPECT_EQ(capped.number("memory.bandwidth_gbs"), 2039);
  EXPECT_EQ(capped.number("calibrated.best.bf16"), std::nullopt);
  EXPECT_EQ(power_capped(partitioned(), 400).facts().size(), static_cast<DeviceFacts>(partitioned()).facts().size());
  EXPECT_CONTAINS(error_of([] { power_capped(partitioned(), 50); }), "100 to 400 W");
  EXPECT_CONTAINS(error_of([] { power_capped(partitioned(), -1); }), "-1 W");
  EXPECT_CONTAINS(error_of([] { power_capped(ampere(), 50); }), "TDP");
}

}  // namespace
}  // namespace hpqf::device
