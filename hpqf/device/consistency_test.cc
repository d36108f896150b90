#include "hpqf/device/consistency.h"

#include <gtest/gtest.h>

#include "hpqf/device/fixture_test.h"

namespace hpqf::device {
namespace {

std::vector<std::string> broken(const DeviceFacts& device) {
  std::vector<std::string> names;
  for (const Breach& breach : breaches(device)) names.push_back(breach.rule);
  return names;
}
using Names = std::vector<std::string>;

// 132 units x 1830 MHz x 4096 = 989.4 TFLOP/s.
Facts hopper() {
  return Facts("h100")
      .number("units.count", 132)
      .number("units.boost_clock_mhz", 1980)
      .number("units.tensor_clock_mhz", 1830)
      .number("rate.bf16", 4096)
      .number("peak.bf16.dense", 989.4)
      .number("rate.fp32", 256)
      .number("peak.fp32.dense", 66.9);
}

TEST(Consistency, TrueFactsPassAndUnknownOnesAreNotHeldAgainstADevice) {
  EXPECT_EQ(broken(hopper()), Names{});
  EXPECT_EQ(broken(Facts()), Names{});
  EXPECT_EQ(broken(Facts().number("peak.bf16.dense", 989.4)), Names{});
}

TEST(Consistency, PeakFollowsFromUnits) {
  EXPECT_EQ(broken(hopper().number("peak.bf16.dense", 1979)), Names{"units"});
  EXPECT_EQ(broken(hopper().number("peak.bf16.dense", 989.4 * 0.97)), Names{"units"});
  EXPECT_EQ(broken(hopper().number("units.count", 144)), (Names{"units", "units"}));
  // A clock of its own wins.
  EXPECT_EQ(broken(hopper().number("peak.bf16.clock", 915).number("peak.bf16.dense", 494.7)), Names{});
  const Breach breach = breaches(hopper().number("peak.bf16.dense", 1979)).front();
  EXPECT_EQ(breach.device, "h100");
  EXPECT_EQ(breach.text, "peak.bf16.dense is 1979, but 132 units x 1830 MHz x 4096 op/clock are 989.43");
}

TEST(Consistency, SparseIsTwiceDense) {
  EXPECT_EQ(broken(hopper().number("peak.bf16.sparse", 1979)), Names{});
  EXPECT_EQ(broken(hopper().number("peak.bf16.sparse", 989.4)), Names{"sparse"});
  EXPECT_EQ(broken(hopper().number("peak.bf16.sparse", 1979).flag("support.sparsity_2_4", false)), Names{"sparse"});
}

TEST(Consistency, BandwidthIsBusTimesRate) {
  Facts gddr = Facts().number("memory.bus_bits", 512).number("memory.data_rate_gbps", 28);
  EXPECT_EQ(broken(gddr.number("memory.bandwidth_gbs", 1792)), Names{});
  EXPECT_EQ(broken(gddr.number("memory.bandwidth_gbs", 1792e3)), Names{"bandwidth"});
}

TEST(Consistency, MemoryIsOfAKindAndWhole) {
  EXPECT_EQ(broken(Facts().text("memory.type", "LPDDR5").number("memory.data_rate_gbps", 6.4)), Names{});
  EXPECT_EQ(broken(Facts().text("memory.type", "HBM2e").number("memory.data_rate_gbps", 6.4)), Names{"memory-type"});
  Facts a10 = Facts().text("memory.type", "GDDR6").number("memory.bus_bits", 384);
  EXPECT_EQ(broken(a10.number("memory.capacity_gb", 24)), Names{});
  EXPECT_EQ(broken(a10.number("memory.capacity_gb", 28)), Names{"capacity"});
  Facts h200 = Facts().number("memory.stacks", 6).number("memory.stack_gb", 24);
  EXPECT_EQ(broken(h200.number("memory.capacity_gb", 141)), Names{});
  EXPECT_EQ(broken(h200.number("memory.capacity_gb", 192)), Names{"capacity"});
  EXPECT_EQ(broken(h200.number("memory.capacity_gb", 96)), Names{"capacity"});
}

TEST(Consistency, PartsDoNotExceedTheWhole) {
  EXPECT_EQ(broken(Facts().number("memory.usable_gb", 79).number("memory.capacity_gb", 80)), Names{});
  EXPECT_EQ(broken(Facts().number("memory.usable_gb", 85).number("memory.capacity_gb", 80)), Names{"order"});
  EXPECT_EQ(broken(hopper().number("calibrated.best.bf16", 794.5)), Names{});
  EXPECT_EQ(broken(hopper().number("calibrated.best.bf16", 1100)), Names{"order"});
  EXPECT_EQ(broken(hopper().number("calibrated.gemm.bf16.4096", 1100)), Names{"order"});
  EXPECT_EQ(broken(hopper().number("calibrated.best.fp32", 90).number("peak.fp32_tensor.dense", 130)), Names{})
      << "measured on the matrix units";
}

TEST(Consistency, CountsMultiply) {
  EXPECT_EQ(broken(Facts()
                       .number("units.count", 132)
                       .number("units.matrix_units_per_unit", 4)
                       .number("units.matrix_units", 528)),
            Names{});
  EXPECT_EQ(broken(Facts()
                       .number("units.count", 132)
                       .number("units.matrix_units_per_unit", 4)
                       .number("units.matrix_units", 576)),
            Names{"product"});
  EXPECT_EQ(broken(Facts().number("link.device.one_way_gbs", 450).number("link.device.two_way_gbs", 900)), Names{});
  EXPECT_EQ(broken(Facts().number("link.device.one_way_gbs", 900).number("link.device.two_way_gbs", 900)),
            Names{"product"});
}

TEST(Consistency, APeakNeedsArithmetic) {
  EXPECT_EQ(broken(hopper().flag("support.bf16.matmul", true)), Names{});
  EXPECT_EQ(broken(hopper().flag("support.bf16.matmul", false)), Names{"support"});
  EXPECT_EQ(broken(hopper().flag("peak.bf16.emulated", true)), Names{"support"});
  EXPECT_EQ(broken(Facts().flag("support.bf16.matmul", true).flag("peak.bf16.emulated", true)), Names{"support"});
}

TEST(Consistency, Fp8RangeFollowsFromTheEncoding) {
  EXPECT_EQ(broken(Facts().text("support.fp8.encoding", "fnuz").number("support.fp8.e4m3_max", 240)), Names{});
  EXPECT_EQ(broken(Facts().text("support.fp8.encoding", "fnuz").number("support.fp8.e4m3_max", 448)), Names{"fp8"});
}

TEST(Consistency, HalfTheBitsAreAtMostTwiceAsFast) {
  EXPECT_EQ(broken(Facts().number("peak.bf16.dense", 362).number("peak.fp8_e4m3.dense", 733)), Names{});
  EXPECT_EQ(broken(Facts().number("peak.bf16.dense", 362).number("peak.fp8_e4m3.dense", 1466)), Names{"ratio"});
}

}  // namespace
}  // namespace hpqf::device
