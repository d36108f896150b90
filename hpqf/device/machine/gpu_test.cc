// The code that loads the vendors' libraries, with libraries built for the test: their functions have the real names
// and types.
#include "hpqf/device/machine/gpu.h"

#include <gtest/gtest.h>

namespace hpqf::device::machine {
namespace {

TEST(Nvml, ReadsGpusThroughTheLibrary) {
  const GpuReport report = nvml(HPQF_FAKE_NVML)->read();
  EXPECT_EQ(report.missing, "");
  EXPECT_EQ(report.driver, "550.54.15");
  ASSERT_EQ(report.gpus.size(), 2u);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0], "GPU 2: Insufficient Permissions");

  const GpuFacts& first = report.gpus[0];
  EXPECT_EQ(first.name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(first.uuid, "GPU-11111111-aaaa");
  EXPECT_EQ(first.pci_address, "00000000:17:00.0");
  EXPECT_EQ(first.pci_id, "10de:20b0");
  EXPECT_EQ(first.architecture, "cc 8.0");
  EXPECT_EQ(first.memory_bytes, int64_t{40} << 30);
  EXPECT_EQ(first.memory_used_bytes, int64_t{1} << 30);
  EXPECT_EQ(first.ecc, true);
  EXPECT_EQ(first.power.limit_watts, 250);
  EXPECT_EQ(first.power.default_watts, 400);
  EXPECT_EQ(first.power.least_watts, 100);
  EXPECT_EQ(first.clocks.sm_mhz, 1095);
  EXPECT_EQ(first.clocks.largest_sm_mhz, 1410);
  EXPECT_EQ(first.clocks.memory_mhz, 1215);
  EXPECT_EQ(first.slowed_by, (std::vector<std::string>{"power cap", "thermal (hardware)"}));
  EXPECT_EQ(first.mig, false);
  EXPECT_TRUE(first.partitions.empty());
  EXPECT_EQ(first.nvlink.present, 12);
  EXPECT_EQ(first.nvlink.active, 10);
  EXPECT_TRUE(first.nvlink.to_switch);
  EXPECT_FALSE(first.nvlink.version) << "the library has no such function";
  EXPECT_EQ(first.pcie.width, 8);
  EXPECT_EQ(first.pcie.largest_width, 16);
  EXPECT_EQ(first.generation, 3);
  EXPECT_EQ(first.peers, (std::vector<std::string>{"", "disabled in the driver"}));

  const GpuFacts& second = report.gpus[1];
  EXPECT_EQ(second.ecc, false);
  EXPECT_TRUE(second.slowed_by.empty()) << "idle is no trouble";
  EXPECT_EQ(second.mig, true);
  ASSERT_EQ(second.partitions.size(), 1u);
  EXPECT_EQ(second.partitions[0].name, "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
  EXPECT_EQ(second.partitions[0].uuid, "MIG-33333333-cccc");
  EXPECT_EQ(second.partitions[0].memory_bytes, int64_t{19968} << 20);
  EXPECT_EQ(second.partitions[0].slices, 3);
  EXPECT_EQ(second.partitions[0].multiprocessors, 42);
}

TEST(Nvml, IsLoadedAnewForEachReading) {
  EXPECT_EQ(nvml(HPQF_FAKE_NVML)->read().gpus.size(), 2u);
  EXPECT_EQ(nvml(HPQF_FAKE_NVML)->read().gpus.size(), 2u);
}

TEST(Nvml, AMissingLibraryIsSaidAndNoFailure) {
  const GpuReport report = nvml("libno-such-library.so.1")->read();
  EXPECT_NE(report.missing.find("libno-such-library.so.1"), std::string::npos) << report.missing;
  EXPECT_TRUE(report.gpus.empty());
}

TEST(Nvml, ALibraryWithoutItsFunctionsIsSaidToo) {
  const GpuReport report = nvml(HPQF_FAKE_ROCM_SMI)->read();
  EXPECT_EQ(report.missing, "nvmlInit_v2: this driver has no such function");
  EXPECT_TRUE(report.gpus.empty());
}

TEST(RocmSmi, ReadsGpusThroughTheLibrary) {
  const GpuReport report = rocm_smi(HPQF_FAKE_ROCM_SMI)->read();
  EXPECT_EQ(report.missing, "");
  EXPECT_EQ(report.driver, "6.7.0");
  ASSERT_EQ(report.gpus.size(), 1u);
  const GpuFacts& gpu = report.gpus[0];
  EXPECT_EQ(gpu.vendor, "AMD");
  EXPECT_EQ(gpu.name, "AMD Instinct MI300X OAM");
  EXPECT_EQ(gpu.uuid, "9246fe09eb0f4f8e");
  EXPECT_EQ(gpu.pci_address, "0001:0c:02.1");
  EXPECT_EQ(gpu.pci_id, "1002:74a1");
  EXPECT_EQ(gpu.memory_bytes, int64_t{192} << 30);
  EXPECT_EQ(gpu.power.limit_watts, 750);
  EXPECT_FALSE(gpu.power.default_watts);
  EXPECT_FALSE(gpu.memory_used_bytes) << "the library has no such function";
  EXPECT_EQ(gpu.partition_mode, "CPX/NPS4");
}

TEST(RocmSmi, AMissingLibraryIsSaidAndNoFailure) {
  EXPECT_NE(rocm_smi("libno-such-library.so")->read().missing, "");
  EXPECT_EQ(rocm_smi(HPQF_FAKE_NVML)->read().missing, "rsmi_init: error -1");
}

}  // namespace
}  // namespace hpqf::device::machine
