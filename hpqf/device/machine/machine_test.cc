#include "hpqf/device/machine/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "hpqf/base/error.h"
#include "hpqf/device/machine/fixture_test.h"

namespace hpqf::device::machine {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

TEST(Machine, XeonWithTwoSockets) {
  const MachineFacts m = facts_of("xeon-spr-2s");
  EXPECT_EQ(m.cpu.model, "Intel(R) Xeon(R) Platinum 8480+");
  EXPECT_EQ(m.cpu.logical, 224);
  EXPECT_EQ(m.cpu.cores, 112);
  EXPECT_EQ(m.cpu.packages, 2);
  EXPECT_EQ(m.cpu.threads_per_core, 2);
  EXPECT_EQ(m.cpu.largest_caches, 2);
  EXPECT_EQ(m.cpu.features.isa(),
            "avx2+fma+f16c+avx512+avx512_vnni+avx_vnni+avx512_bf16+avx512_fp16+amx_bf16+amx_int8");
  ASSERT_EQ(m.cpu.caches.size(), 4u);
  EXPECT_EQ(m.cpu.caches[3].bytes, int64_t{105} << 20);
  EXPECT_EQ(m.cpu.caches[3].shared_by, 112);
  ASSERT_EQ(m.memory.nodes.size(), 2u);
  EXPECT_EQ(m.memory.nodes[1].cpus.size(), 112u);
  EXPECT_EQ(m.memory.nodes[1].cpus.front(), 56);
  EXPECT_EQ(m.memory.total_bytes, 2048 * kGib);
  EXPECT_EQ(m.cpu.frequency.driver, "intel_pstate");
  EXPECT_EQ(m.cpu.frequency.largest_mhz, 3800);
  EXPECT_FALSE(m.limits.cpu_quota);
  ASSERT_EQ(m.bus.energy.size(), 2u);
  EXPECT_FALSE(m.bus.energy[0].readable);
  EXPECT_FALSE(m.cpu.virtual_machine);
}

TEST(Machine, GenoaWithFourNodesASocket) {
  const MachineFacts m = facts_of("epyc-genoa-nps4");
  EXPECT_EQ(m.cpu.cores, 192);
  EXPECT_EQ(m.cpu.threads_per_core, 1);
  EXPECT_EQ(m.cpu.largest_caches, 24) << "12 chiplets a socket";
  ASSERT_EQ(m.memory.nodes.size(), 8u);
  EXPECT_EQ(m.memory.nodes[7].cpus.back(), 191);
  EXPECT_EQ(m.memory.nodes[7].bytes, 192 * kGib);
}

TEST(Machine, ArmIsNamedByItsNumbers) {
  const MachineFacts m = facts_of("graviton3");
  EXPECT_EQ(m.cpu.model, "ARM Neoverse V1");
  EXPECT_EQ(m.cpu.architecture, "aarch64");
  EXPECT_EQ(m.cpu.features.isa(), "neon_dot");
  EXPECT_EQ(m.cpu.further, (std::vector<std::string>{"bf16", "i8mm", "sve"}));
  EXPECT_EQ(m.cpu.cores, 64);
}

TEST(Machine, ContainerWithQuota) {
  const MachineFacts m = facts_of("container-1.5-cpus");
  EXPECT_EQ(m.limits.cpu_quota, 1.5);
  EXPECT_EQ(m.limits.memory_bytes, 4 * kGib);
  EXPECT_EQ(m.limits.cpu_file, "sys/fs/cgroup/cpu.max");
  EXPECT_EQ(m.memory.transparent_huge_pages, "never");
  EXPECT_TRUE(m.cpu.virtual_machine);
  EXPECT_EQ(m.usable_cpus(), 8);
}

TEST(Machine, DgxWithFabric) {
  const MachineFacts m = facts_of("dgx-h100");
  ASSERT_EQ(m.all_gpus().size(), 8u);
  const GpuFacts& gpu = *m.all_gpus()[7];
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.pci_id, "10de:2330");
  EXPECT_EQ(gpu.nvlink.active, 18);
  EXPECT_TRUE(gpu.nvlink.to_switch);
  EXPECT_EQ(gpu.peers[0], "ok");
  EXPECT_EQ(gpu.peers[7], "");
  ASSERT_EQ(m.bus.devices.size(), 16u);
  int network = 0;
  for (const PciDevice& d : m.bus.devices) network += d.kind == "network";
  EXPECT_EQ(network, 8);
  EXPECT_EQ(m.bus.devices[0].link.largest_speed, 32);
  ASSERT_EQ(m.bus.ports.size(), 8u);
  EXPECT_EQ(m.bus.ports[7].state, "ACTIVE");
  EXPECT_EQ(m.bus.ports[7].numa_node, 1);
}

// A real recording, of a small virtual machine with old control groups.
TEST(Machine, RecordedVirtualMachine) {
  const MachineFacts m = facts_of("epyc-vm");
  EXPECT_EQ(m.cpu.model, "AMD EPYC");
  EXPECT_TRUE(m.cpu.virtual_machine);
  EXPECT_EQ(m.cpu.cores, 2);
  EXPECT_EQ(m.cpu.features.isa(), "avx2+fma+f16c");
  EXPECT_EQ(m.cpu.largest_caches, 1);
  EXPECT_EQ(m.cpu.frequency.driver, "");
  EXPECT_FALSE(m.limits.cpu_quota) << "-1 is no quota";
  EXPECT_FALSE(m.limits.memory_bytes) << "the largest number of pages is no limit";
  EXPECT_TRUE(m.bus.devices.empty()) << "virtio devices are none of ours";
  EXPECT_TRUE(m.all_gpus().empty());
}

// The machine that these lines run on.
TEST(Machine, DetectsThisOne) {
  const MachineFacts m = detect(RootTree(), {});
  EXPECT_GE(m.cpu.cores, 1);
  EXPECT_GE(m.cpu.logical, m.cpu.cores);
  EXPECT_EQ(m.cpu.logical, sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_NEAR(double(m.memory.total_bytes), double(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE),
              0.01 * double(m.memory.total_bytes));
  EXPECT_GE(m.usable_cpus(), 1);
  // Two readings of the same CPU: the kernel's words and the cpuid instruction.
  EXPECT_EQ(m.cpu.features.isa(), cpu().isa());
}

TEST(Machine, AnEmptyTreeIsAMachineOfWhichNothingIsKnown) {
  const MachineFacts m = detect(RecordedTree(RecordedFiles{}), {});
  EXPECT_EQ(m.cpu.model, "unknown CPU");
  EXPECT_EQ(m.cpu.logical, 1);
  EXPECT_EQ(m.cpu.cores, 1);
  EXPECT_TRUE(m.memory.nodes.empty());
  EXPECT_TRUE(m.bus.devices.empty());
  EXPECT_FALSE(to_json(m).empty());
  EXPECT_TRUE(advise(m, {1}).empty());
}

MachineFacts with_files(const std::map<std::string, std::string>& files) {
  return detect(RecordedTree({files, {}}), {});
}

TEST(Limits, OldControlGroups) {
  const MachineFacts m =
      with_files({{"proc/self/cgroup", "4:memory:/box/a\n2:cpu,cpuacct:/box/a\n1:name=systemd:/x\n0::/\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/box/a/cpu.cfs_quota_us", "400000\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/box/a/cpu.cfs_period_us", "100000\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "250000\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                  {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
                  {"sys/fs/cgroup/memory/box/a/memory.limit_in_bytes", "9223372036854771712\n"},
                  {"sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"}});
  EXPECT_EQ(m.limits.cpu_quota, 2.5) << "the smallest of the groups above holds";
  EXPECT_EQ(m.limits.cpu_file, "sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us");
  EXPECT_EQ(m.limits.memory_bytes, kGib);
}

TEST(Limits, GroupsAboveAndNoLimit) {
  const MachineFacts nested = with_files({{"proc/self/cgroup", "0::/pod/container\n"},
                                          {"sys/fs/cgroup/pod/container/cpu.max", "max 100000\n"},
                                          {"sys/fs/cgroup/pod/cpu.max", "50000 100000\n"},
                                          {"sys/fs/cgroup/pod/memory.max", "max\n"}});
  EXPECT_EQ(nested.limits.cpu_quota, 0.5);
  EXPECT_FALSE(nested.limits.memory_bytes);
  EXPECT_FALSE(with_files({{"proc/self/cgroup", "garbage\n::\n0::\n"}}).limits.cpu_quota);
}

TEST(Limits, Affinity) {
  const MachineFacts m = with_files({{"sys/devices/system/cpu/online", "0-15\n"},
                                     {"proc/self/status", "Cpus_allowed_list:\t2-5\nMems_allowed_list:\t0\n"}});
  EXPECT_EQ(m.usable_cpus(), 4);
  EXPECT_EQ(m.limits.memory_nodes, std::vector<int>{0});
}

TEST(Bus, NonsenseOfVirtualDevicesIsNoLink) {
  const std::string at = "sys/bus/pci/devices/0000:00:02.0/";
  const MachineFacts m = with_files({{at + "class", "0x030000\n"},
                                     {at + "vendor", "0x1af4\n"},
                                     {at + "device", "0x1050\n"},
                                     {at + "current_link_width", "0\n"},
                                     {at + "max_link_width", "255\n"},
                                     {at + "current_link_speed", "Unknown\n"}});
  ASSERT_EQ(m.bus.devices.size(), 1u);
  EXPECT_EQ(m.bus.devices[0].vendor, "");
  EXPECT_EQ(m.bus.devices[0].id, "1af4:1050");
  EXPECT_FALSE(m.bus.devices[0].link.narrow() || m.bus.devices[0].link.slow());
}

TEST(Recording, LosesNothingThatIsLookedAt) {
  for (const auto& entry : std::filesystem::directory_iterator(HPQF_MACHINES)) {
    if (!entry.is_directory()) continue;
    const std::string name = entry.path().filename().string();
    const Recording first = recorded(name);
    const Recording again = record(RecordedTree(first.files), first.gpus);
    const MachineFacts before = facts_of(name), after = detect(RecordedTree(again.files), again.gpus);
    EXPECT_EQ(to_json(after), to_json(before)) << name;
    const Recording read = parse_recording(to_json(again), name);
    EXPECT_EQ(read.files, again.files) << name;
    EXPECT_EQ(to_json(detect(RecordedTree(read.files), read.gpus)), to_json(before)) << name;
  }
}

TEST(Recording, OfThisMachineDescribesIt) {
  const Recording recording = record(RootTree(), {});
  MachineFacts here = detect(RootTree(), {}), there = detect(RecordedTree(recording.files), {});
  here.memory.available_bytes = there.memory.available_bytes = 0;  // moves
  EXPECT_EQ(to_json(there), to_json(here));
}

TEST(Recording, CutsUniqueIds) {
  GpuReport report{.library = "NVML"};
  report.gpus.resize(1);
  report.gpus[0].uuid = "GPU-5a3b0f1e-1111-2222-3333-444444444444";
  report.gpus[0].partitions.push_back({.name = "part", .uuid = "MIG-aabbccdd-1111-2222-3333-444444444444"});
  const Recording recording = record(RecordedTree(RecordedFiles{}), {report});
  EXPECT_EQ(recording.gpus[0].gpus[0].uuid, "GPU-5a3b0f1e");
  EXPECT_EQ(recording.gpus[0].gpus[0].partitions[0].uuid, "MIG-aabbccdd");
}

TEST(Recording, DamageIsRefusedByName) {
  const std::string whole = to_json(recorded("a100-mig"));
  for (const std::string& text :
       {whole.substr(0, whole.size() / 2), std::string("{}"), std::string("[1]"), std::string(),
        std::string(R"({"schema": "hpqf.machine", "version": 99, "files": {}})"),
        std::string(
            R"({"schema": "hpqf.machine", "version": 1, "files": {"a": 1}, "denied": [], "gpu_libraries": []})")}) {
    try {
      parse_recording(text, "box/machine.json");
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_NE(e.asked().find("box/machine.json"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hpqf::device::machine
