#include "hpqf/device/machine/calibration.h"

#include <gtest/gtest.h>

#include "hpqf/device/machine/fixture_test.h"
#include "hpqf/device/machine/verdict.h"

namespace hpqf::device::machine {
namespace {

constexpr int64_t kNow = 1'700'000'000, kDay = 24 * 3600;

Calibration sample() {
  Calibration c;
  c.identity = {"Some CPU", "avx2", "2.13.0", 2, 8, 1.5};
  c.unix_seconds = kNow;
  c.took_seconds = 12.5;
  c.products = {{"fp32", "512x512x512", "torch", {60, 59, 61, 21}, {1, 1, 1, 21}, ""},
                {"int8", "512x512x512", "avx2", {120, 118, 121, 21}, {2, 1.95, 2.02, 21}, ""},
                {"bf16", "512x512x512", "torch", {6, 5.9, 6.1, 3}, {0.1, 0.09, 0.11, 3}, ""}};
  c.layers = {{"int8", "512x512x512", 0.01, 1.9, ""},
              {"int8", "32x1024x1024", 0.002, 0.8, ""},
              {"int12", "512x512x512", 0.012, 1.02, ""},
              {"bf16", "512x512x512", 0, 0, "cpu has no avx512_bf16 or amx_bf16"}};
  c.bandwidths = {{"copy", "bytes", {10, 9, 11, 9}}};
  c.noise = {0.01, 0, 0, 0.1, {}};
  c.left_out = {"layer x"};
  return c;
}

TEST(Calibration, IsFoundWholeAgain) {
  const Calibration c = sample();
  const std::string file = add_calibration("", c);
  const CalibrationLookup found = find_calibration(file, c.identity, false, kNow + kDay);
  ASSERT_TRUE(found.calibration) << found.why_not;
  EXPECT_EQ(to_json(*found.calibration), to_json(c));
}

TEST(Calibration, OfAnotherMachineIsNotUsed) {
  const Calibration c = sample();
  const std::string file = add_calibration("", c);
  auto why = [&](auto change) {
    CalibrationIdentity other = c.identity;
    change(other);
    const CalibrationLookup found = find_calibration(file, other, false, kNow);
    EXPECT_FALSE(found.calibration);
    return found.why_not;
  };
  EXPECT_EQ(why([](auto& i) { i.cpu = "Another"; }), "the kept calibration is for another CPU: Some CPU");
  EXPECT_EQ(why([](auto& i) { i.isa = "avx512"; }), "the kept calibration is for other instruction sets: avx2");
  EXPECT_EQ(why([](auto& i) { i.torch = "2.14.0"; }), "the kept calibration is for another torch: 2.13.0");
  EXPECT_EQ(why([](auto& i) { i.threads = 4; }), "the kept calibration is for 2 threads");
  EXPECT_EQ(why([](auto& i) { i.cpus = 4; }), "the kept calibration is for 8 usable CPUs");
  EXPECT_EQ(why([](auto& i) { i.quota = 0; }), "the kept calibration is for a quota of 1.5 CPUs");
}

TEST(Calibration, OldQuickOrFromTheFutureIsNotUsed) {
  Calibration c = sample();
  const std::string file = add_calibration("", c);
  EXPECT_TRUE(find_calibration(file, c.identity, false, kNow + 30 * kDay).calibration);
  EXPECT_EQ(find_calibration(file, c.identity, false, kNow + 31 * kDay).why_not, "the kept calibration is 31 days old");
  EXPECT_EQ(find_calibration(file, c.identity, false, kNow - 2 * kDay).why_not,
            "the kept calibration has a date in the future");
  c.quick = true;
  const std::string quick = add_calibration("", c);
  EXPECT_EQ(find_calibration(quick, c.identity, false, kNow).why_not, "the kept calibration is a quick one");
  EXPECT_TRUE(find_calibration(quick, c.identity, true, kNow).calibration);
}

TEST(Calibration, ADamagedFileIsSaidAndBegunAnew) {
  const Calibration c = sample();
  const std::string whole = add_calibration("", c);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string("{}"), std::string("null"), std::string("[]"),
        std::string(R"({"schema": "hpqf.calibration", "version": 1, "calibrations": [{}]})"),
        std::string(R"({"schema": "hpqf.calibration", "version": 9, "calibrations": []})")}) {
    const CalibrationLookup found = find_calibration(damaged, c.identity, false, kNow);
    EXPECT_FALSE(found.calibration);
    EXPECT_TRUE(found.why_not.starts_with("the kept calibration is damaged")) << found.why_not;
    EXPECT_TRUE(find_calibration(add_calibration(damaged, c), c.identity, false, kNow).calibration);
  }
  EXPECT_EQ(find_calibration("", c.identity, false, kNow).why_not, "no calibration yet");
}

TEST(Calibration, MachinesShareAFile) {
  Calibration a = sample(), b = sample();
  b.identity.threads = 1;
  std::string file = add_calibration(add_calibration("", a), b);
  a.took_seconds = 3;
  file = add_calibration(file, a);  // in place of the older one
  EXPECT_EQ(find_calibration(file, a.identity, false, kNow).calibration->took_seconds, 3);
  EXPECT_EQ(find_calibration(file, b.identity, false, kNow).calibration->took_seconds, 12.5);
  EXPECT_EQ(file.find("Some CPU", file.find("Some CPU", file.find("Some CPU") + 1) + 1), std::string::npos)
      << "two, not three";
}

TEST(Noise, EachSourceHasItsReason) {
  EXPECT_TRUE(noise_reasons({.spread = 0.1, .stolen = 0.02, .throttled = 0.02, .others = 0.5}).empty());
  EXPECT_EQ(noise_reasons({.spread = 0.11}).size(), 1u);
  EXPECT_EQ(noise_reasons({.stolen = 0.03}).size(), 1u);
  EXPECT_EQ(noise_reasons({.throttled = 0.03}).size(), 1u);
  EXPECT_EQ(noise_reasons({.others = 0.6}).size(), 1u);
}

TEST(Advice, OfMeasurements) {
  const MachineFacts quiet = detect(RecordedTree(RecordedFiles{}), {});
  Calibration c = sample();
  auto findings = advise(quiet, {1}, &c);
  ASSERT_TRUE(find(findings, "bf16-slow"));
  EXPECT_EQ(find(findings, "bf16-slow")->what, "torch's bf16 products take 10.0 times as long as fp32's (measured)");
  EXPECT_FALSE(find(findings, "noisy-machine"));
  EXPECT_FALSE(find(findings, "nothing-pays"));
  c.noise.reasons = {"someone else works here"};
  c.products[2].ratio.median = 3;
  c.layers[0].ratio = 1.01;
  findings = advise(quiet, {1}, &c);
  EXPECT_TRUE(find(findings, "noisy-machine"));
  EXPECT_TRUE(find(findings, "nothing-pays"));
  EXPECT_FALSE(find(findings, "bf16-slow"));
}

const Verdict& of(const std::vector<Verdict>& verdicts, const std::string& format) {
  for (const Verdict& v : verdicts)
    if (v.format == format) return v;
  throw std::out_of_range(format);
}

TEST(WhatPays, ByMeasurement) {
  const Calibration c = sample();
  const CpuFeatures avx2{.avx2 = true};
  const auto verdicts = what_pays(avx2, &c);
  EXPECT_EQ(verdicts.size(), formats::all_formats().size());
  EXPECT_EQ(of(verdicts, "fp32").worth, Worth::baseline);
  EXPECT_EQ(of(verdicts, "int8").worth, Worth::pays);
  EXPECT_EQ(of(verdicts, "int8").best_ratio, 1.9);
  EXPECT_EQ(of(verdicts, "int8").text,
            "measured: 0.80 times fp32's speed (32x1024x1024) to 1.90 (512x512x512); --precision auto keeps fp32 where "
            "it is faster");
  EXPECT_EQ(of(verdicts, "int12").worth, Worth::even);
  EXPECT_EQ(of(verdicts, "bf16").worth, Worth::emulated);
  EXPECT_EQ(of(verdicts, "bf16").text, "cpu has no avx512_bf16 or amx_bf16");
  EXPECT_EQ(of(verdicts, "fp8_e4m3").worth, Worth::emulated);

  Calibration noisy = c;
  noisy.noise.reasons = {"someone else works here"};
  EXPECT_NE(of(what_pays(avx2, &noisy), "int8").text.find("not to be relied on"), std::string::npos);

  Calibration slow = c;
  slow.layers = {{"int12", "512x512x512", 0.012, 0.5, ""}};
  EXPECT_EQ(of(what_pays(avx2, &slow), "int12").worth, Worth::slower);
}

TEST(WhatPays, WithoutMeasurementNothingIsClaimed) {
  const auto xeon = what_pays(facts_of("xeon-spr-2s").cpu.features, nullptr);
  EXPECT_EQ(of(xeon, "bf16").worth, Worth::unknown);
  EXPECT_EQ(of(xeon, "int8").text, "the CPU has the instructions; not measured");
  EXPECT_EQ(of(xeon, "int4").worth, Worth::emulated);
  const auto avx2 = what_pays({.avx2 = true}, nullptr);
  EXPECT_EQ(of(avx2, "int8").text, "runs as int7 x int8; not measured");
  EXPECT_EQ(of(what_pays({}, nullptr), "int8").worth, Worth::emulated);
}

}  // namespace
}  // namespace hpqf::device::machine
