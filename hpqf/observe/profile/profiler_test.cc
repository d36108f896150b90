#include "hpqf/observe/profile/profiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/profile/timeline.h"
#include "hpqf/observe/relay.h"

namespace hpqf::observe {
namespace {

using Json = nlohmann::json;

BlockFormat block(const char* text) { return formats::parse_block_format(text); }

OpEvent event(const char* layer, Pass pass, const char* format, const char* how, double flops, int64_t ns,
              double bytes = 100) {
  return {layer, "linear", pass, block(format), block(format), block(format), block(format), how, "", flops, bytes, ns};
}

struct Fixture {
  int64_t now = 1000;
  Profiler profiler{{.clock = [this] { return now; }}};
};

RateTable rates() {
  return {.device = "toy",
          .peaks = {{Format::fp32, {100, "measured", "by hand"}}, {Format::bf16, {400, "quoted", "by hand"}}},
          .bandwidth = PeakRate{10, "measured", "by hand"}};
}

TEST(Profiler, UtilisationWeighsEachFormatByItsPeak) {
  Fixture f;
  f.profiler.set_rates(rates());
  f.profiler.start();
  f.profiler.on_op(event("a", Pass::forward, "bf16", "torch.cast", 200, 1'000'000'000));
  f.profiler.on_op(event("b", Pass::forward, "bf16", "emulated", 50, 1'000'000'000));  // computes in fp32
  f.now += 2'000'000'000;
  f.profiler.stop();
  const ProfileReport report = f.profiler.report();
  const Utilisation use = report.utilisation();
  ASSERT_TRUE(use.u && use.mfu);
  EXPECT_DOUBLE_EQ(*use.u, (200.0 / 400 + 50.0 / 100) / 2);
  EXPECT_DOUBLE_EQ(*use.mfu, 250.0 / 400 / 2);
  EXPECT_EQ(use.base, Format::bf16);
  EXPECT_DOUBLE_EQ(report.low_precision_flops(), 0.8);
  EXPECT_DOUBLE_EQ(report.low_precision_time(), 0.5);
  ASSERT_EQ(report.shares().size(), 2u);
  EXPECT_DOUBLE_EQ(*report.shares()[0].achieved_over_peak, 0.5);
}

TEST(Profiler, AnUnknownPeakIsSaidAndNotGuessed) {
  Fixture f;
  f.profiler.set_rates(rates());
  f.profiler.start();
  f.profiler.on_op(event("a", Pass::forward, "int8", "hpqf.integer", 200, 1'000));
  f.now += 1000;
  const ProfileReport report = f.profiler.report();  // while it runs
  EXPECT_FALSE(report.utilisation().u);
  EXPECT_EQ(report.utilisation().unknown, std::vector{Format::int8});
  EXPECT_NE(report.summary().find("utilisation U unknown (no peak for int8)"), std::string::npos) << report.summary();
  EXPECT_TRUE(Json::parse(report.to_json())["utilisation"]["u"].is_null());
  EXPECT_EQ(ProfileReport{}.utilisation().u, std::nullopt);
}

TEST(Profiler, TheWiderOperandIsWhatMultiplies) {
  AuditRow row{.effective_a = "fp32", .effective_b = "bf16", .implementation = "torch"};
  EXPECT_EQ(arithmetic(row), Format::fp32);
  row.effective_a = "int8[1x64]";
  row.effective_b = "int8[1x64]";
  EXPECT_EQ(arithmetic(row), Format::int8);
  row.implementation = "emulated";
  EXPECT_EQ(arithmetic(row), Format::fp32);
}

TEST(Profiler, RooflinePointsKnowTheirRoof) {
  Fixture f;
  f.profiler.set_rates(rates());
  f.profiler.start();
  f.profiler.on_op(event("thin", Pass::forward, "fp32", "torch", 100, 1'000'000'000, 50));  // 2 FLOP a byte
  f.profiler.on_op(event("fat", Pass::dgrad, "fp32", "torch", 100, 1'000'000'000, 5));      // 20
  f.profiler.on_op(event("norm", Pass::forward, "fp32", "torch", 0, 1'000, 5));
  const auto points = f.profiler.report().roofline();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_DOUBLE_EQ(points[0].intensity, 2);
  EXPECT_TRUE(points[0].memory_bound);
  EXPECT_DOUBLE_EQ(*points[0].attainable, 20);
  EXPECT_FALSE(points[1].memory_bound);
  EXPECT_DOUBLE_EQ(*points[1].attainable, 100);
  EXPECT_DOUBLE_EQ(points[1].achieved, 100);
}

TEST(Profiler, CountsNothingWhileStopped) {
  Fixture f;
  f.profiler.on_op(event("a", Pass::forward, "fp32", "torch", 1, 10));
  f.profiler.start();
  f.now += 5;
  f.profiler.stop();
  f.now += 100;
  f.profiler.step();
  f.profiler.on_op(event("a", Pass::forward, "fp32", "torch", 1, 10));
  f.profiler.start();
  f.now += 5;
  f.profiler.stop();
  const ProfileReport report = f.profiler.report();
  EXPECT_TRUE(report.audit.rows.empty());
  EXPECT_EQ(report.audit.steps, 0);
  EXPECT_NEAR(report.audit.total_seconds, 10e-9, 1e-15);
}

TEST(Profiler, UncountedOpsAreAveragedByTheirTime) {
  Fixture f;
  f.profiler.add_uncounted({{"aten::add", 0.5, 2}}, 1);
  f.profiler.add_uncounted({{"aten::add", 0.1, 1}, {"aten::relu", 0.4, 1}}, 3);
  const auto ops = f.profiler.report().audit.uncounted;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_DOUBLE_EQ(ops[0].share_of_time, 0.2);
  EXPECT_EQ(ops[0].calls, 3);
  EXPECT_DOUBLE_EQ(ops[1].share_of_time, 0.3);
  EXPECT_NE(f.profiler.report().summary().find("aten::relu 30.0 %"), std::string::npos);
}

TEST(Profiler, MillionStepsTakeNoMoreMemoryThanAFew) {
  Fixture f;
  f.profiler.start();
  for (int i = 0; i < 1'000'000; ++i) {
    f.profiler.on_op(event("a", Pass::forward, "fp32", "torch", 2, 3));
    f.now += 10;
    f.profiler.step();
  }
  EXPECT_EQ(f.profiler.report().audit.rows.size(), 1u);
  EXPECT_EQ(f.profiler.report().audit.rows[0].calls, 1'000'000);
  const std::string trace = f.profiler.trace_json(1 << 20);
  EXPECT_LE(trace.size(), size_t{1} << 20);
  const Json json = Json::parse(trace);
  EXPECT_EQ(json["otherData"]["events"], 2'000'000);
  EXPECT_GT(json["traceEvents"].size(), 5000u);
  EXPECT_EQ(json["otherData"]["written"], json["traceEvents"].size());
  EXPECT_EQ(json["traceEvents"].back()["name"], "step 1000000");  // the newest are kept
  EXPECT_LE(f.profiler.trace_json().size(), size_t{64} << 20);
}

TEST(Timeline, KeepsNoMoreThanItsRing) {
  Timeline timeline(10);
  for (int i = 0; i < 100; ++i) timeline.add_step(i, i, i + 1);
  EXPECT_EQ(timeline.kept(), 10);
  EXPECT_EQ(timeline.seen(), 100);
  EXPECT_THROW(Timeline(-1), Error);
  Timeline none(0);
  none.add_step(1, 0, 1);
  EXPECT_EQ(none.seen(), 0);
}

TEST(Timeline, TheTwoGemmsOfOneNodeLieSideBySide) {
  Fixture f;
  f.profiler.start();
  f.now = 10'000;
  f.profiler.on_op(event("a", Pass::dgrad, "fp32", "torch", 2, 4000));
  f.now = 10'050;
  f.profiler.on_op(event("a", Pass::wgrad, "fp32", "torch", 2, 4000));
  const Json events = Json::parse(f.profiler.trace_json())["traceEvents"];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NEAR(events[0]["ts"].get<double>(), 1.0, 1e-6);  // 10 us - 2 x 4 us, after an origin of 1 us
  EXPECT_NEAR(events[1]["ts"].get<double>(), 5.05, 1e-6);
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_EQ(events[0]["args"]["layer"], "a");
  EXPECT_EQ(events[0]["args"]["flops"], 2);
}

TEST(Timeline, EachThreadHasItsTrack) {
  Fixture f;
  f.profiler.start();
  f.profiler.on_op(event("a", Pass::forward, "fp32", "torch", 2, 1));
  std::thread([&] { f.profiler.on_op(event("\"b\"\n", Pass::forward, "fp32", "torch", 2, 1)); }).join();
  const Json events = Json::parse(f.profiler.trace_json())["traceEvents"];
  EXPECT_NE(events[0]["tid"], events[1]["tid"]);
  EXPECT_EQ(events[1]["args"]["layer"], "\"b\"\n");
}

TEST(Timeline, ATraceThatCannotBeWrittenIsAnError) {
  EXPECT_THROW(Profiler().write_trace("/nowhere/at/all.json"), Error);
  EXPECT_THROW(Profiler().trace_json(100), Error);
}

TEST(RateTable, SurvivesJsonAndRefusesNonsense) {
  EXPECT_EQ(RateTable::from_json(rates().to_json()), rates());
  for (
      const char* bad :
      {R"({"schema":"hpqf.rates","version":1,"device":"","peaks":{"fp99":{}}})",
       R"({"schema":"hpqf.rates","version":1,"device":"","peaks":{"fp32":{"per_second":0,"basis":"quoted","source":""}}})",
       R"({"schema":"hpqf.rates","version":1,"device":"","peaks":{"fp32":{"per_second":1,"basis":"guess","source":""}}})",
       R"({"schema":"hpqf.rates","version":2,"device":"","peaks":{}})"})
    EXPECT_THROW(RateTable::from_json(bad), Error) << bad;
}

TEST(Relay, SinksComeAndGo) {
  Relay relay;
  const auto profiler = std::make_shared<Profiler>();
  profiler->start();
  relay.on_op(event("a", Pass::forward, "fp32", "torch", 1, 1));
  relay.add(profiler);
  relay.add(profiler);
  relay.on_op(event("a", Pass::forward, "fp32", "torch", 1, 1));
  relay.remove(profiler.get());
  relay.on_op(event("a", Pass::forward, "fp32", "torch", 1, 1));
  EXPECT_EQ(profiler->report().audit.rows.at(0).calls, 1);
}

}  // namespace
}  // namespace hpqf::observe
