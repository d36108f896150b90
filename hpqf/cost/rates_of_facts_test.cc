#include "hpqf/cost/rates_of_facts.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"
#include "hpqf/device/database.h"

namespace hpqf::cost {
namespace {

using device::DeviceFacts;

void set(DeviceFacts& facts, const char* key, double value, device::Trust trust = device::Trust::sheet) {
  device::Value v;
  v.number = value;
  facts.set({key, v, std::make_shared<device::Source>(device::Source{"s", "a sheet", "", "2024", trust}), "", false});
}

DeviceFacts made_up() {
  DeviceFacts facts("made-up");
  set(facts, "peak.fp32.dense", 10);
  set(facts, "peak.bf16.dense", 100);
  set(facts, "calibrated.best.bf16", 80);
  set(facts, "memory.bandwidth_gbs", 1000);
  set(facts, "memory.capacity_gb", 40);
  set(facts, "power.tdp_w", 300);
  set(facts, "link.device.one_way_gbs", 200);
  set(facts, "link.network.nic_gbps", 400);
  set(facts, "link.network.nic_per_device", 2);
  return facts;
}

TEST(RatesOfFacts, TakesMeasurementsBeforeSheets) {
  const DeviceRates d = rates_of(made_up(), {});
  EXPECT_EQ(d.find(Format::bf16)->rate.value, 80e12);
  EXPECT_EQ(d.find(Format::bf16)->rate.basis, Basis::quoted);
  EXPECT_EQ(d.find(Format::bf16)->peak, 100e12);
  EXPECT_DOUBLE_EQ(d.find(Format::fp32)->rate.value, 10e12 * device::AchievableFactors::kDefault);
  EXPECT_EQ(d.find(Format::fp32)->rate.basis, Basis::modelled);
  EXPECT_EQ(d.find(Format::int8), nullptr);  // not known: nothing is assumed
  EXPECT_EQ(d.bandwidth.value, 1e12);
  EXPECT_EQ(d.bandwidth_achievable.basis, Basis::assumed);
  EXPECT_EQ(d.memory.value, 40e9);
  EXPECT_EQ(d.watts.value, 300);
  EXPECT_NO_THROW(d.check());
}

TEST(RatesOfFacts, LinkOfTheSystemOrTheNetwork) {
  EXPECT_EQ(rates_of(made_up(), {}, 8).link.value, 200e9);
  EXPECT_EQ(rates_of(made_up(), {}, 16).link.value, 100e9);  // two cards of 400 Gb/s
  DeviceFacts facts = made_up();
  set(facts, "calibrated.allreduce_gbs", 150);
  EXPECT_EQ(rates_of(facts, {}, 8).link.value, 150e9);
}

TEST(RatesOfFacts, EmulatedFormatsHaveNoRate) {
  DeviceFacts facts = made_up();
  device::Value yes;
  yes.kind = device::Value::Kind::flag;
  yes.flag = true;
  facts.set({"peak.bf16.emulated", yes, std::make_shared<device::Source>(), "", false});
  EXPECT_EQ(rates_of(facts, {}).find(Format::bf16), nullptr);
}

TEST(RatesOfFacts, MissingFactsAreSaid) {
  DeviceFacts facts("bare");
  set(facts, "peak.fp32.dense", 10);
  EXPECT_THROW(rates_of(facts, {}), Error);
  set(facts, "memory.bandwidth_gbs", 100);
  const DeviceRates d = rates_of(facts, {});
  EXPECT_EQ(d.watts.value, 0);
  EXPECT_EQ(d.link.value, 0);
  EXPECT_EQ(d.launch.basis, Basis::assumed);
}

TEST(RatesOfFacts, DevicesOfTheShippedDatabase) {
  const device::Database database = device::Database::load(device::shipped_database());
  const device::AchievableFactors factors(database.devices());
  const DeviceRates h100 = rates_of(database.device("nvidia-h100-sxm"), factors, 8);
  // bf16 and fp8 as measured by others, below their sheets of 989.4 and 1979.
  EXPECT_NEAR(h100.find(Format::bf16)->rate.value / 1e12, 794.5, 1);
  EXPECT_GT(h100.find(Format::fp8_e4m3)->rate.value, 1.5 * h100.find(Format::bf16)->rate.value);
  EXPECT_GT(h100.find(Format::bf16)->rate.value, 10 * h100.find(Format::fp32)->rate.value);
  EXPECT_EQ(h100.find(Format::int4), nullptr);
  EXPECT_EQ(h100.watts.value, 700);
}

}  // namespace
}  // namespace hpqf::cost
