#include "hpqf/device/machine/advice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hpqf/device/machine/fixture_test.h"

namespace hpqf::device::machine {
namespace {

std::set<std::string> ids(const std::vector<Finding>& findings) {
  std::set<std::string> all;
  for (const Finding& f : findings) all.insert(f.id);
  return all;
}

TEST(Advice, WorstFirstAndEveryPartFilled) {
  for (const char* name :
       {"xeon-spr-2s", "epyc-genoa-nps4", "graviton3", "container-1.5-cpus", "dgx-h100", "a100-mig", "two-4090"}) {
    const auto findings = advise(facts_of(name), {64, true});
    EXPECT_TRUE(std::is_sorted(findings.begin(), findings.end(), [](const auto& a, const auto& b) {
      return a.severity > b.severity;
    })) << name;
    for (const Finding& f : findings)
      EXPECT_FALSE(f.id.empty() || f.what.empty() || f.why.empty() || f.todo.empty()) << name << " " << f.id;
  }
}

TEST(Advice, XeonThatIsRunOnOneThread) {
  EXPECT_EQ(ids(advise(facts_of("xeon-spr-2s"), {1, true})), std::set<std::string>{"energy-unreadable"})
      << "powersave of intel_pstate is no fault, and one thread needs no binding";
}

TEST(Advice, NodesAndSiblings) {
  const MachineFacts xeon = facts_of("xeon-spr-2s");
  auto findings = advise(xeon, {112, true});
  ASSERT_TRUE(find(findings, "numa-unbound"));
  EXPECT_NE(find(findings, "numa-unbound")->todo.find("--cpunodebind=0 --membind=0 hpqf ... --threads 56"),
            std::string::npos);
  EXPECT_FALSE(find(findings, "threads-on-siblings"));
  EXPECT_TRUE(find(advise(xeon, {113, true}), "threads-on-siblings"));
  EXPECT_TRUE(find(advise(xeon, {224, true}), "threads-on-siblings"));
  EXPECT_EQ(find(advise(xeon, {225, true}), "threads-over-cpus")->severity, Severity::problem);

  MachineFacts bound = xeon;  // as under numactl --cpunodebind=0
  bound.limits.cpus = bound.memory.nodes[0].cpus;
  EXPECT_FALSE(find(advise(bound, {56, true}), "numa-unbound"));
  EXPECT_TRUE(find(advise(bound, {113, true}), "threads-over-cpus"));
}

TEST(Advice, Quota) {
  const MachineFacts box = facts_of("container-1.5-cpus");
  auto findings = advise(box, {4, true});
  ASSERT_TRUE(find(findings, "threads-over-quota"));
  EXPECT_EQ(findings.front().id, "threads-over-quota") << "a problem comes first";
  EXPECT_EQ(find(findings, "threads-over-quota")->what, "4 threads, but a quota of 1.5 CPUs (sys/fs/cgroup/cpu.max)");
  EXPECT_NE(find(findings, "threads-over-quota")->todo.find("--threads 1 "), std::string::npos);
  EXPECT_TRUE(find(findings, "memory-limit"));
  EXPECT_TRUE(find(findings, "no-huge-pages"));
  EXPECT_FALSE(find(findings, "no-vnni"));
  EXPECT_FALSE(find(advise(box, {1, true}), "threads-over-quota"));
  MachineFacts wide = box;
  wide.limits.cpu_quota = 16;  // more than the machine has
  EXPECT_FALSE(find(advise(wide, {32, true}), "threads-over-quota"));
  EXPECT_TRUE(find(advise(wide, {32, true}), "threads-over-cpus"));
}

TEST(Advice, Frequency) {
  const auto genoa = advise(facts_of("epyc-genoa-nps4"), {1, true});
  EXPECT_TRUE(find(genoa, "governor-powersave"));
  ASSERT_TRUE(find(genoa, "frequency-cap"));
  EXPECT_EQ(find(genoa, "frequency-cap")->what, "clock capped at 1500 MHz of 2400");
  const auto ryzen = advise(facts_of("two-4090"), {1, true});
  EXPECT_FALSE(find(ryzen, "governor-powersave"));
  EXPECT_TRUE(find(ryzen, "energy-preference"));
}

TEST(Advice, InstructionSets) {
  MachineFacts m = facts_of("a100-mig");
  EXPECT_TRUE(find(advise(m, {1, true}), "no-vnni"));
  EXPECT_TRUE(find(advise(m, {1, true}), "no-bf16"));
  EXPECT_FALSE(find(advise(m, {1, true}), "no-avx2"));
  m.cpu.features.avx2 = false;
  EXPECT_EQ(find(advise(m, {1, true}), "no-avx2")->severity, Severity::problem);
  EXPECT_FALSE(find(advise(m, {1, true}), "no-vnni"));
  EXPECT_TRUE(find(advise(facts_of("graviton3"), {1, true}), "arm-emulated"));
  EXPECT_FALSE(find(advise(facts_of("graviton3"), {1, true}), "no-bf16"));
}

TEST(Advice, DgxIsInOrderUntilSomethingBreaks) {
  const MachineFacts dgx = facts_of("dgx-h100");
  EXPECT_EQ(ids(advise(dgx, {1, true})), std::set<std::string>{"energy-unreadable"});
  EXPECT_TRUE(find(advise(dgx, {1, false}), "torch-without-gpu"));

  MachineFacts broken = dgx;
  broken.gpus[0].gpus[3].nvlink.active = 16;
  broken.gpus[0].gpus[5].pcie.width = 8;
  broken.gpus[0].gpus[0].peers[1] = "disabled in the driver";
  broken.bus.ports[2].state = "DOWN";
  broken.bus.devices[0].link.speed = 16;  // a network card (address 0000:18:00.0)
  const auto findings = advise(broken, {1, true});
  EXPECT_EQ(find(findings, "gpu-nvlink-down")->what, "GPU 3 (NVIDIA H100 80GB HBM3): 16 of 18 NVLinks are up");
  EXPECT_EQ(find(findings, "gpu-pcie-width")->what, "GPU 5 (NVIDIA H100 80GB HBM3): PCIe x8 of x16");
  EXPECT_EQ(find(findings, "gpu-p2p-off")->what,
            "1 of 56 ordered pairs of GPUs have no direct access: disabled in the driver, though NVLink is up");
  EXPECT_EQ(find(findings, "gpu-p2p-off")->severity, Severity::problem);
  EXPECT_NE(find(findings, "fabric-port-down")->what.find("mlx5_2"), std::string::npos);
  EXPECT_EQ(find(findings, "pcie-speed")->what, "Mellanox network at 0000:18:00.0: 16 GT/s of 32");
}

TEST(Advice, Mig) {
  MachineFacts m = facts_of("a100-mig");
  const auto findings = advise(m, {1, true});
  ASSERT_TRUE(find(findings, "gpu-mig"));
  EXPECT_EQ(find(findings, "gpu-mig")->what,
            "GPU 0 (NVIDIA A100-SXM4-40GB): MIG splits it into 3 instances, the largest with 20.0 GiB");
  EXPECT_FALSE(find(findings, "gpu-mig-pending"));
  m.gpus[0].gpus[0].partitions.clear();
  m.gpus[0].gpus[0].mig_after_reset = false;
  EXPECT_EQ(find(advise(m, {1, true}), "gpu-mig")->severity, Severity::problem) << "nothing can run on it";
  EXPECT_TRUE(find(advise(m, {1, true}), "gpu-mig-pending"));
}

TEST(Advice, Workstation) {
  const auto findings = advise(facts_of("two-4090"), {1, true});
  EXPECT_EQ(find(findings, "gpu-power-cap")->todo, "nvidia-smi -i 0 -pl 450");
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(), [](const auto& f) { return f.id == "gpu-power-cap"; }), 1);
  EXPECT_EQ(find(findings, "gpu-p2p-off")->severity, Severity::warning) << "these GPUs cannot";
  EXPECT_NE(find(findings, "gpu-slowed")->what.find("GPU 1"), std::string::npos);
  EXPECT_TRUE(find(findings, "gpu-ecc-off"));
  EXPECT_TRUE(find(findings, "gpu-pcie-width"));
  EXPECT_FALSE(find(findings, "pcie-width")) << "the same link is not reported twice";
  EXPECT_FALSE(find(findings, "pcie-speed")) << "an idle GPU lowers its link itself";
}

TEST(Advice, AGpuWithoutDriverIsNotPassedOver) {
  MachineFacts m = facts_of("a100-mig");
  m.gpus = {{.library = "NVML", .missing = "libnvidia-ml.so.1: cannot open shared object file"}};
  const auto findings = advise(m, {1, false});
  ASSERT_TRUE(find(findings, "gpu-no-driver"));
  EXPECT_NE(find(findings, "gpu-no-driver")->what.find("10de:20b0"), std::string::npos);
  EXPECT_FALSE(find(findings, "torch-without-gpu"));
  EXPECT_FALSE(find(advise(facts_of("xeon-spr-2s"), {1, false}), "gpu-no-driver"));
}

}  // namespace
}  // namespace hpqf::device::machine
