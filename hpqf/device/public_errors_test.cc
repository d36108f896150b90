// Wrong values that stand in public tables. Each device is first given its true figures, which no rule may refuse, then
// the wrong one.
#include <gtest/gtest.h>

#include "hpqf/device/consistency.h"
#include "hpqf/device/fixture_test.h"

namespace hpqf::device {
namespace {

struct Wrong {
  const char* what;
  Facts truth;
  const char* key;
  double value;
  const char* rule;
};

Facts rtx4090() {
  return Facts("rtx-4090")
      .number("units.count", 128)
      .number("units.boost_clock_mhz", 2520)
      .number("rate.bf16", 512)
      .number("peak.bf16.dense", 165.2)
      .number("rate.fp8_e4m3", 1024)
      .number("peak.fp8_e4m3.dense", 330.3)
      .number("rate.int8", 2048)
      .number("peak.int8.dense", 660.6);
}
Facts rtx5090() {
  return Facts("rtx-5090")
      .number("units.count", 170)
      .number("units.boost_clock_mhz", 2407)
      .number("rate.fp8_e4m3", 1024)
      .number("peak.fp8_e4m3.dense", 419)
      .number("rate.nvfp4", 4096)
      .number("peak.nvfp4.dense", 1676)
      .number("memory.bus_bits", 512)
      .number("memory.data_rate_gbps", 28)
      .number("memory.bandwidth_gbs", 1792);
}
Facts b200() {
  return Facts("b200")
      .number("units.count", 148)
      .number("units.tensor_clock_mhz", 1850)
      .number("rate.bf16", 8192)
      .number("peak.bf16.dense", 2250)
      .number("memory.bus_bits", 8192)
      .number("memory.data_rate_gbps", 7.8125)
      .number("memory.bandwidth_gbs", 8000);
}
Facts mi355x() {
  return Facts("mi355x")
      .number("units.count", 256)
      .number("units.boost_clock_mhz", 2400)
      .number("rate.bf16", 4096)
      .number("peak.bf16.dense", 2516);
}

std::vector<Wrong> wrong_values() {
  const Facts a6000 = Facts("a6000")
                          .number("units.count", 84)
                          .number("units.boost_clock_mhz", 1800)
                          .number("rate.bf16", 1024)
                          .number("peak.bf16.dense", 154.8);
  // Half the rate of an A10 for each unit.
  const Facts a10g = Facts("a10g")
                         .number("units.count", 80)
                         .number("units.boost_clock_mhz", 1710)
                         .number("rate.bf16", 512)
                         .number("peak.bf16.dense", 70);
  const Facts a10 =
      Facts("a10").text("memory.type", "GDDR6").number("memory.bus_bits", 384).number("memory.capacity_gb", 24);
  const Facts mi100 = Facts("mi100")
                          .number("units.count", 120)
                          .number("units.boost_clock_mhz", 1502)
                          .number("rate.int8", 1024)
                          .number("peak.int8.dense", 184.6);
  const Facts mi300x = Facts("mi300x")
                           .number("units.count", 304)
                           .number("units.boost_clock_mhz", 2100)
                           .number("rate.bf16", 2048)
                           .number("peak.bf16.dense", 1307.4);
  const Facts h100 =
      Facts("h100").flag("support.int4.matmul", false).number("peak.int8.dense", 1979).number("peak.int4.dense", 0);
  const Facts a100 = Facts("a100")
                         .number("units.count", 108)
                         .number("units.boost_clock_mhz", 1410)
                         .number("rate.bf16", 2048)
                         .number("peak.bf16.dense", 312);
  const Facts l40s = Facts("l40s").number("peak.bf16.dense", 362).number("peak.fp8_e4m3.dense", 733);
  const Facts b300 = Facts("b300")
                         .number("units.count", 148)
                         .number("units.tensor_clock_mhz", 1850)
                         .number("rate.bf16", 8192)
                         .number("peak.bf16.dense", 2250);
  const Facts mlu370 = Facts("mlu370")
                           .text("memory.type", "LPDDR5")
                           .number("memory.bus_bits", 768)
                           .number("memory.data_rate_gbps", 6.4)
                           .number("memory.bandwidth_gbs", 614.4);
  const Facts s5000 = Facts("s5000")
                          .number("memory.bandwidth_gbs", 1600)
                          .number("memory.bus_bits", 4096)
                          .number("memory.data_rate_gbps", 3.125);
  const Facts br100 = Facts("br100")
                          .number("peak.tf32.dense", 512)
                          .number("peak.fp32.dense", 256)
                          .number("peak.bf16.dense", 1024)
                          .number("peak.int8.dense", 2048);
  return {
      {"RTX 4090, the vector peak as bf16", rtx4090(), "peak.bf16.dense", 82.6, "units"},
      {"RTX 4090, bf16 sparse as dense", rtx4090(), "peak.bf16.dense", 330.3, "units"},
      {"RTX 4090, fp8 sparse as dense", rtx4090(), "peak.fp8_e4m3.dense", 1321, "units"},
      {"RTX 4090, int8 sparse as dense", rtx4090(), "peak.int8.dense", 1321, "units"},
      {"RTX A6000, the vector peak as bf16", a6000, "peak.bf16.dense", 38.7, "units"},
      {"A10G with the peak of an A10", a10g, "peak.bf16.dense", 125, "units"},
      {"A10 with 28 GB", a10, "memory.capacity_gb", 28, "capacity"},
      {"MI100 int8 twice too high", mi100, "peak.int8.dense", 369, "units"},
      {"MI300X, 4096 bf16 operations per unit", mi300x, "rate.bf16", 4096, "units"},
      {"H100 int4, which it has no arithmetic for", h100, "peak.int4.dense", 3026, "support"},
      {"A100 in units of 2^40", a100, "peak.bf16.dense", 312e12 / (1LL << 40), "units"},
      {"RTX 5090, bandwidth times 1000", rtx5090(), "memory.bandwidth_gbs", 1792e3, "bandwidth"},
      {"RTX 5090, fp8 sparse as dense", rtx5090(), "peak.fp8_e4m3.dense", 1676, "units"},
      {"RTX 5090, fp4 sparse as dense", rtx5090(), "peak.nvfp4.dense", 3352, "units"},
      {"L40S, fp8 sparse as dense", l40s, "peak.fp8_e4m3.dense", 1466, "ratio"},
      {"B200 with 160 units", b200(), "units.count", 160, "units"},
      {"B200, bandwidth 80", b200(), "memory.bandwidth_gbs", 80, "bandwidth"},
      {"B300, bf16 3750", b300, "peak.bf16.dense", 3750, "units"},
      {"MI355X with 4 of 8 compute dies", mi355x(), "units.count", 128, "units"},
      {"MI355X, bf16 as in tables that say 2300", mi355x(), "peak.bf16.dense", 2300, "units"},
      {"MTT S5000 with a competitor's bandwidth", s5000, "memory.bandwidth_gbs", 3350, "bandwidth"},
      {"BR100, bf16 a quarter", br100, "peak.bf16.dense", 256, "order"},
      {"MLU370, HBM's rate on LPDDR5", mlu370, "memory.data_rate_gbps", 2.4, "bandwidth"},
  };
}

TEST(PublicErrors, AreRefused) {
  for (const Wrong& wrong : wrong_values()) {
    EXPECT_TRUE(breaches(wrong.truth).empty()) << wrong.what;
    bool caught = false;
    for (const Breach& breach : breaches(Facts(wrong.truth).number(wrong.key, wrong.value)))
      caught = caught || breach.rule == std::string(wrong.rule);
    EXPECT_TRUE(caught) << wrong.what;
  }
}

TEST(PublicErrors, WrongKindOfMemory) {
  EXPECT_EQ(breaches(Facts("mlu370").text("memory.type", "HBM2e").number("memory.data_rate_gbps", 6.4)).front().rule,
            "memory-type");
}

}  // namespace
}  // namespace hpqf::device
