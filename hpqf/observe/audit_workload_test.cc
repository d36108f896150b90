#include "hpqf/observe/audit_workload.h"

#include <gtest/gtest.h>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {

AuditRow row(const char* layer, const char* op, Pass pass, double flops, const char* implementation = "torch") {
  AuditRow r;
  r.layer = layer;
  r.op = op;
  r.pass = pass;
  r.requested_a = r.requested_b = r.effective_a = r.effective_b = "bf16";
  r.implementation = implementation;
  r.calls = 4;
  r.flops = flops;
  return r;
}

AuditReport report() {
  AuditReport audit;
  audit.steps = 2;
  audit.rows = {row("conv1", "conv2d", Pass::forward, 800), row("conv1", "conv2d", Pass::wgrad, 800),
                row("", "softmax", Pass::forward, 0), row("fc", "linear", Pass::forward, 80, "emulated"),
                row("fc", "linear", Pass::backward, 160)};
  return audit;
}

plan::ModelFacts facts() {
  return {"Net", {{"conv1", "Conv2d", plan::LayerKind::conv, 30}, {"fc", "Linear", plan::LayerKind::linear, 12}}};
}

TEST(AuditWorkload, FlopsPerSampleAndPass) {
  const cost::Workload work = workload_of(report(), facts(), 8);
  EXPECT_EQ(work.model, "Net");
  ASSERT_EQ(work.ops.size(), 3u);
  EXPECT_EQ(work.ops[0].flops, 100);
  EXPECT_FALSE(work.ops[0].dgrad);
  EXPECT_TRUE(work.ops[0].wgrad);
  EXPECT_EQ(work.ops[0].kind, plan::LayerKind::conv);
  EXPECT_EQ(work.ops[0].launches, 2);
  EXPECT_EQ(work.ops[1].flops, 10);
  EXPECT_TRUE(work.ops[1].dgrad && work.ops[1].wgrad);
  EXPECT_EQ(work.parameters(), 42);
  EXPECT_EQ(work.training_flops(), 2 * 100 + 3 * 10);
}

TEST(AuditWorkload, EmulatedShareIsByFlops) {
  EXPECT_DOUBLE_EQ(emulated_share(report()), 80.0 / (800 + 800 + 80 + 160));
  EXPECT_EQ(emulated_share({}), 0);
}

TEST(AuditWorkload, RefusesAnAuditOfNothing) {
  EXPECT_THROW(workload_of({}, {}, 8), Error);
  EXPECT_THROW(workload_of(report(), {}, 0), Error);
  AuditReport empty;
  empty.steps = 1;
  EXPECT_THROW(workload_of(empty, {}, 8), Error);
}

}  // namespace
}  // namespace hpqf::observe
