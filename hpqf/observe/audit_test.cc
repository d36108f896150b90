#include "hpqf/observe/audit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "hpqf/base/error.h"

namespace hpqf::observe {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

BlockFormat block(std::string_view text) { return formats::parse_block_format(text); }

OpEvent gemm(std::string_view layer, Pass pass, std::string_view format, std::string_view implementation, double flops,
             int64_t nanoseconds) {
  OpEvent e;
  e.layer = layer;
  e.op = "linear";
  e.pass = pass;
  e.requested_a = e.requested_b = e.effective_a = e.effective_b = block(format);
  e.implementation = implementation;
  e.flops = flops;
  e.bytes = 10;
  e.nanoseconds = nanoseconds;
  return e;
}

TEST(Audit, SumsByKeyAndKeepsTheOrderOfFirstEvents) {
  Audit audit;
  audit.on_op(gemm("b", Pass::forward, "bf16", "emulated", 100, 1000));
  audit.on_op(gemm("a", Pass::forward, "fp32", "torch", 50, 500));
  audit.on_op(gemm("b", Pass::wgrad, "bf16", "emulated", 100, 2000));
  audit.on_op(gemm("b", Pass::forward, "bf16", "emulated", 100, 3000));
  OpEvent other = gemm("b", Pass::forward, "bf16", "emulated", 100, 1);
  other.reason = "cpu has no avx512_bf16 or amx_bf16";
  audit.on_op(other);

  const AuditReport report = audit.report();
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.rows[0].layer, "b");
  EXPECT_EQ(report.rows[0].pass, Pass::forward);
  EXPECT_EQ(report.rows[0].calls, 2);
  EXPECT_EQ(report.rows[0].flops, 200);
  EXPECT_EQ(report.rows[0].bytes, 20);
  EXPECT_DOUBLE_EQ(report.rows[0].seconds, 4000e-9);
  EXPECT_EQ(report.rows[0].requested_a, "bf16");
  EXPECT_EQ(report.rows[1].pass, Pass::wgrad) << "all rows of b stand together";
  EXPECT_EQ(report.rows[2].reason, "cpu has no avx512_bf16 or amx_bf16");
  EXPECT_EQ(report.rows[3].layer, "a");
}

TEST(Audit, EveryPartOfTheKeyCounts) {
  Audit audit;
  std::vector<OpEvent> events(9, gemm("a", Pass::forward, "bf16", "torch", 1, 1));
  events[1].layer = "b";
  events[2].op = "matmul";
  events[3].pass = Pass::dgrad;
  events[4].requested_a = block("fp16");
  events[5].requested_b = block("int8[1x128]");
  events[6].effective_a = block("int8[1x128]");
  events[7].effective_b = block("int8[1x64]");
  events[8].reason = "r";
  for (const OpEvent& e : events) audit.on_op(e);
  // Shifted borders between strings are other keys too.
  OpEvent shifted = events[0];
  shifted.layer = "ali";
  shifted.op = "near";
  audit.on_op(shifted);
  shifted.layer = "al";
  shifted.op = "inear";
  audit.on_op(shifted);
  EXPECT_EQ(audit.report().rows.size(), 11u);
}

TEST(Audit, ReusedMemoryIsNotMistakenForTheOldString) {
  // A second runtime may put other names where the first one had its own.
  Audit audit;
  std::string name = "layer.one";
  audit.on_op(gemm(name, Pass::forward, "bf16", "torch", 1, 1));
  name.replace(6, 3, "two");
  audit.on_op(gemm(name, Pass::forward, "bf16", "torch", 1, 1));
  const std::string copy = "layer.two";
  audit.on_op(gemm(copy, Pass::forward, "bf16", "torch", 1, 1));
  const AuditReport report = audit.report();
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].layer, "layer.one");
  EXPECT_EQ(report.rows[1].calls, 2);
}

TEST(Audit, ManyThreadsLoseNothing) {
  Audit audit;
  constexpr int kThreads = 4, kRounds = 5000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&audit, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string layer = "layer." + std::to_string(i % 37);
        audit.on_op(gemm(layer, i % 2 ? Pass::wgrad : Pass::forward, "bf16", "torch", 3, 7));
        if (i % 100 == 0) audit.on_cast({layer, plan::Role::input, block("fp16"), 10, 0, 1});
        if (i % 500 == 0) audit.report();
        if (i % 1000 == 0) audit.add_step(1.0 / (1 + t));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const AuditReport report = audit.report();
  EXPECT_EQ(report.rows.size(), 37u * 2);
  int64_t calls = 0;
  for (const AuditRow& row : report.rows) calls += row.calls;
  EXPECT_EQ(calls, kThreads * kRounds);
  EXPECT_EQ(report.counted_flops(), 3.0 * kThreads * kRounds);
  EXPECT_EQ(report.steps, kThreads * kRounds / 1000);
  int64_t overflow = 0;
  for (const auto& cast : audit.take_observations(0).casts) overflow += cast.overflow;
  EXPECT_EQ(overflow, kThreads * kRounds / 100);
}

TEST(Audit, ObservationsMergeInOrderOfTheFirstEvent) {
  Audit audit;
  audit.on_cast({"conv3", plan::Role::input, block("fp16"), 100, 0, 12});
  audit.on_cast({"conv4", plan::Role::input, block("fp16"), 100, 40, 0});
  audit.on_cast({"conv3", plan::Role::input, block("fp16"), 100, 0, 3});
  audit.on_cast({"conv3", plan::Role::weight, block("fp16"), 100, 0, 1});
  const plan::Observations seen = audit.take_observations(7);
  EXPECT_EQ(seen.step, 7);
  ASSERT_EQ(seen.casts.size(), 3u);
  EXPECT_EQ(seen.casts[0].layer, "conv3");
  EXPECT_EQ(seen.casts[0].elements, 200);
  EXPECT_EQ(seen.casts[0].overflow, 15);
  EXPECT_EQ(seen.casts[0].format, "fp16");
  EXPECT_EQ(seen.casts[1].layer, "conv4");
  EXPECT_EQ(seen.casts[1].nonfinite_in, 40);
  EXPECT_EQ(seen.casts[2].role, plan::Role::weight);
  EXPECT_TRUE(audit.take_observations(8).casts.empty()) << "taken once";
}

TEST(Audit, ACauseIsNotHiddenByItsConsequence) {
  // Two micro-batches: the overflow of the first made NaN that reaches the same layer in the second.
  Audit audit;
  audit.on_cast({"conv3", plan::Role::input, block("fp16"), 100, 0, 12});
  audit.on_cast({"conv3", plan::Role::input, block("fp16"), 100, 90, 2});
  const plan::Observations seen = audit.take_observations(1);
  ASSERT_EQ(seen.casts.size(), 2u);
  EXPECT_EQ(seen.casts[0].nonfinite_in, 0);
  EXPECT_EQ(seen.casts[0].overflow, 12);
  EXPECT_EQ(seen.casts[1].nonfinite_in, 90);
}

TEST(Audit, UncountedOpsAverageOverSamples) {
  Audit audit;
  audit.add_uncounted({{"add", 0.2, 10}, {"relu", 0.1, 5}});
  audit.add_uncounted({{"add", 0.4, 10}});
  const AuditReport report = audit.report();
  ASSERT_EQ(report.uncounted.size(), 2u);
  EXPECT_DOUBLE_EQ(report.uncounted[0].share_of_time, 0.3);
  EXPECT_EQ(report.uncounted[0].calls, 20);
  EXPECT_DOUBLE_EQ(report.uncounted[1].share_of_time, 0.05) << "missing in the second sample: counts as 0 there";
}

TEST(Audit, ClearForgetsEverything) {
  Audit audit;
  audit.on_op(gemm("a", Pass::forward, "bf16", "torch", 1, 1));
  audit.on_cast({"a", plan::Role::input, block("fp16"), 1, 0, 1});
  audit.add_step(1);
  audit.add_uncounted({{"add", 0.2, 10}});
  audit.clear();
  const AuditReport report = audit.report();
  EXPECT_TRUE(report.rows.empty() && report.uncounted.empty());
  EXPECT_EQ(report.steps, 0);
  EXPECT_EQ(report.total_seconds, 0);
  EXPECT_TRUE(audit.take_observations(0).casts.empty());
}

TEST(Shares, TheLowerOperandNamesTheFormat) {
  Audit audit;
  audit.on_op(gemm("a", Pass::forward, "bf16", "emulated", 60, 100));
  OpEvent mixed = gemm("a", Pass::dgrad, "fp32", "emulated", 20, 100);
  mixed.effective_b = block("int8[1x128]");
  audit.on_op(mixed);
  audit.on_op(gemm("b", Pass::forward, "bf16", "torch.cast", 20, 300));
  OpEvent softmax = gemm("c", Pass::forward, "fp32", "torch", 0, 500);
  audit.on_op(softmax);
  const auto shares = audit.report().shares();
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_EQ(shares[0].format, "bf16");
  EXPECT_TRUE(shares[0].emulated);
  EXPECT_DOUBLE_EQ(shares[0].flops, 0.6);
  EXPECT_DOUBLE_EQ(shares[0].seconds, 0.1);
  EXPECT_EQ(shares[1].format, "bf16");
  EXPECT_FALSE(shares[1].emulated);
  EXPECT_DOUBLE_EQ(shares[1].seconds, 0.3);
  EXPECT_EQ(shares[2].format, "int8");
  EXPECT_EQ(shares[3].format, "fp32");
  EXPECT_EQ(shares[3].flops, 0);
  EXPECT_DOUBLE_EQ(shares[3].seconds, 0.5);
  EXPECT_TRUE(AuditReport{}.shares().empty());
}

AuditReport sample() {
  Audit audit;
  OpEvent e = gemm("conv \"1\"", Pass::forward, "fp8_e4m3[row]", "emulated", 1.5e9, 12345);
  e.reason = "no cpu multiplies fp8, and this reason goes on for longer than a column";
  audit.on_op(e);
  audit.on_op(gemm("", Pass::backward, "fp32", "torch", 0, 7));
  audit.add_step(0.1);
  audit.add_uncounted({{"add", 0.25, 10}});
  return audit.report();
}

TEST(AuditJson, RoundTripIsExact) {
  const AuditReport report = sample();
  const std::string text = report.to_json();
  EXPECT_EQ(AuditReport::from_json(text).to_json(), text);
  const AuditReport back = AuditReport::from_json(report.to_json(-1));
  ASSERT_EQ(back.rows.size(), 2u);
  EXPECT_EQ(back.rows[0].seconds, report.rows[0].seconds);
  EXPECT_EQ(back.rows[0].reason, report.rows[0].reason);
  EXPECT_EQ(back.total_seconds, 0.1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["schema"], "hpqf.audit");
  EXPECT_EQ(json["rows"][0]["layer"], "conv \"1\"");
  EXPECT_EQ(json["shares"][0]["format"], "fp8_e4m3");
  EXPECT_EQ(AuditReport::from_json(AuditReport{}.to_json()).rows.size(), 0u);
}

TEST(AuditJson, ErrorsNameThePlace) {
  const std::string good = sample().to_json(-1);
  auto error = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    const size_t at = text.find(from);
    if (at == std::string::npos) return "no such text: " + from;
    text.replace(at, from.size(), to);
    try {
      AuditReport::from_json(text, "audit.json");
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_CONTAINS(error("\"forward\"", "\"froward\""), "audit.json: row 0, key \"pass\": \"froward\"");
  EXPECT_CONTAINS(error("fp8_e4m3[row]", "fp8_e9"), "audit.json: row 0, key \"requested_a\"");
  EXPECT_CONTAINS(error("\"calls\":1", "\"calls\":-1"), "row 0, key \"calls\"");
  EXPECT_CONTAINS(error("\"flops\":1500000000.0", "\"flops\":null"), "row 0, key \"flops\"");
  EXPECT_CONTAINS(error("\"version\":1", "\"version\":9"), "version 9");
  EXPECT_CONTAINS(error("hpqf.audit", "hpqf.plan"), "schema \"hpqf.plan\"");
  EXPECT_CONTAINS(error("\"steps\":1,", ""), "no key \"steps\"");
  EXPECT_CONTAINS(error("\"op\":\"add\"", "\"po\":\"add\""), "uncounted op 0");
  for (size_t length = 0; length < good.size(); ++length)
    ASSERT_THROW(AuditReport::from_json(good.substr(0, length)), Error) << length;
}

TEST(Audit, GoesOnFromTheReportOfARunThatIsResumed) {
  const auto first_part = [](Audit& audit) {
    audit.on_op(gemm("a", Pass::forward, "bf16", "emulated", 100, 1000));
    audit.on_op(gemm("b", Pass::forward, "bf16", "emulated", 10, 100));
    audit.add_step(0.5);
    audit.add_uncounted({{"add", 0.25, 4}, {"relu", 0.5, 2}});
  };
  const auto second_part = [](Audit& audit) {
    audit.on_op(gemm("a", Pass::forward, "fp32", "torch", 100, 3000));  // raised meanwhile
    audit.on_op(gemm("b", Pass::forward, "bf16", "emulated", 10, 200));
    audit.on_op(gemm("c", Pass::forward, "bf16", "emulated", 1, 10));
    for (int i = 0; i < 3; ++i) audit.add_step(0.25);
    audit.add_uncounted({{"add", 0.5, 4}, {"mul", 0.25, 1}});  // as many samples as before: halves are exact
  };
  Audit whole, before, after;
  first_part(whole);
  second_part(whole);
  first_part(before);
  after.on_op(gemm("stray", Pass::forward, "fp32", "torch", 1, 1));  // of steps that the resume undoes
  after.restore(AuditReport::from_json(before.report().to_json(), "the first part"));
  second_part(after);
  EXPECT_EQ(after.report().to_json(), whole.report().to_json());

  after.clear();
  EXPECT_TRUE(after.report().rows.empty());
  EXPECT_EQ(after.report().steps, 0);
}

TEST(Audit, ReportsWrittenBeforeSamplesWereCountedStillLoad) {
  Audit audit;
  audit.add_step(1);
  auto json = nlohmann::json::parse(audit.report().to_json());
  json.erase("sampled_steps");
  EXPECT_EQ(AuditReport::from_json(json.dump()).steps, 1);
}

}  // namespace
}  // namespace hpqf::observe
