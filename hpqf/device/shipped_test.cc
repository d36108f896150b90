// The data that ships: every file is read without a mistake, agrees with itself, and would be refused with the mistakes
// that public tables contain.
#include <gtest/gtest.h>

#include <set>

#include "hpqf/device/consistency.h"
#include "hpqf/device/cpuid.h"
#include "hpqf/device/database.h"
#include "hpqf/device/fixture_test.h"
#include "hpqf/device/numbers.h"
#include "hpqf/device/resolve.h"
#include "hpqf/device/share.h"

namespace hpqf::device {
namespace {

const Database& shipped() {
  static const Database database = Database::load(shipped_database());
  return database;
}

std::string all(const std::vector<Breach>& found) {
  std::string text;
  for (const Breach& breach : found) text += breach.device + ": " + breach.rule + ": " + breach.text + "\n";
  return text;
}

DeviceFacts with(const DeviceFacts& device, const std::string& key, double value) {
  DeviceFacts changed = device;
  Fact fact = *device.find(key);
  fact.value.number = value;
  changed.set(fact);
  return changed;
}

bool refused(const DeviceFacts& device, const std::string& rule) {
  for (const Breach& breach : breaches(device)) {
    if (breach.rule == rule) return true;
  }
  return false;
}

TEST(Shipped, EveryFileIsReadAndAgreesWithItself) {
  const LoadedDatabase loaded = Database::load_usable(shipped_database());
  for (const Error& mistake : loaded.mistakes) ADD_FAILURE() << mistake.what();
  ASSERT_FALSE(loaded.database.devices().empty());
  for (const DeviceFacts& device : loaded.database.devices()) EXPECT_EQ(all(breaches(device)), "");
}

TEST(Shipped, EveryDeviceSaysWhatItIs) {
  std::set<std::string> names;
  for (const DeviceFacts& device : shipped().devices()) {
    for (const char* key : {"identity.vendor", "identity.name", "identity.kind"})
      EXPECT_TRUE(device.text(key)) << device.id() << " " << key;
    EXPECT_TRUE(names.insert(device.name()).second) << device.name() << " twice";
    EXPECT_EQ(&shipped().device(device.name()), &device);
    for (const std::string& alias : device.texts("identity.aliases"))
      EXPECT_EQ(error_of([&] { EXPECT_EQ(shipped().device(alias).id(), device.id()) << alias; }), "no error") << alias;
    // Relatives that are named by id exist.
    for (const char* key : {"identity.successor", "identity.predecessor"}) {
      if (const auto id = device.text(key)) {
        EXPECT_NE(shipped().find(*id), nullptr) << device.id() << " " << key << " " << *id;
      }
    }
  }
}

// A device's own driver string finds it, or finds nothing where only the memory tells two apart: never another device.
TEST(Shipped, DriverNamesFindTheirDevice) {
  for (const DeviceFacts& device : shipped().devices()) {
    for (const std::string& part : device.texts("identity.match")) {
      const DeviceFacts* found = shipped().detected(part, device.number("identity.match_memory_gb"));
      if (found) {
        EXPECT_EQ(found->id(), device.id()) << part;
      }
    }
  }
}

TEST(Shipped, AWrongPeakIsRefusedWhereverUnitsAreKnown) {
  int tried = 0;
  for (const DeviceFacts& device : shipped().devices()) {
    for (const PeakField& field : peak_fields()) {
      if (!device.number(peak_key(field.name)) || !peak_from_units(device, field)) continue;
      const double peak = *device.number(peak_key(field.name));
      // Sparse as dense; a wrong unit count (160 for 148); 2^40 taken for 10^12.
      for (const double factor : {2.0, 160 / 148.0, 1e12 / (1LL << 40)})
        EXPECT_TRUE(refused(with(device, peak_key(field.name), peak * factor), "units"))
            << device.id() << " " << field.name << " x " << factor;
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(Shipped, AWrongBandwidthIsRefusedWhereverTheBusIsKnown) {
  int tried = 0;
  for (const DeviceFacts& device : shipped().devices()) {
    const auto bandwidth = device.number("memory.bandwidth_gbs");
    if (!bandwidth || !device.number("memory.bus_bits") || !device.number("memory.data_rate_gbps")) continue;
    EXPECT_TRUE(refused(with(device, "memory.bandwidth_gbs", *bandwidth * 1000), "bandwidth")) << device.id();
    EXPECT_TRUE(refused(with(device, "memory.bandwidth_gbs", *bandwidth / 100), "bandwidth")) << device.id();
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

// What the files say of x86 CPUs is what cpu_native() answers for their instruction sets. (fp16 is left out: the fields
// speak of dot products, and AVX512-FP16 multiplies and adds in vectors.)
TEST(Shipped, CpusAgreeWithTheirInstructionSets) {
  int tried = 0;
  for (const DeviceFacts& device : shipped().devices()) {
    const auto features = x86_features(device);
    if (!features) continue;
    for (const Format format : {Format::bf16, Format::int8, Format::fp8_e4m3}) {
      const auto said = device.flag(std::string("support.") + formats::name(format) + ".matmul");
      if (!said) continue;
      EXPECT_EQ(*said, cpu_native(format, *features).possible) << device.id() << " " << formats::name(format);
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(Shipped, EveryResolutionHasAReason) {
  const AchievableFactors factors(shipped().devices());
  for (const DeviceFacts& device : shipped().devices()) {
    for (const auto& info : formats::all_formats()) {
      const Resolution r = resolve(info.format, device, factors);
      EXPECT_FALSE(r.reason.empty()) << device.id() << " " << info.name;
      if (r.kind == Kind::native && info.format != Format::fp32) {
        EXPECT_GE(r.gain.value_or(0), 1.15) << device.id() << " " << info.name;
      }
      if (r.rate) {
        EXPECT_GT(r.rate->tera, 0) << device.id() << " " << info.name;
      }
    }
  }
}

TEST(Shipped, EveryPartitionCanBeTaken) {
  for (const DeviceFacts& device : shipped().devices()) {
    const Fact* memory = device.find("partition.profile_memory_gb");
    if (!memory || !device.find("partition.profile_slices")) continue;
    for (const std::string& profile : device.texts("partition.profiles")) {
      if (!memory->value.at(profile)) continue;
      const DeviceFacts part = partition(device, profile);
      EXPECT_LE(*part.number("memory.capacity_gb"), *device.number("memory.capacity_gb")) << device.id() << profile;
      EXPECT_EQ(all(breaches(part)), "") << device.id() << " " << profile;
    }
  }
}

}  // namespace
}  // namespace hpqf::device
