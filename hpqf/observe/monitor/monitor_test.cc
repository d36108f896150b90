#include "hpqf/observe/monitor/monitor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/monitor/host_probe.h"
#include "hpqf/observe/monitor/reference_run.h"

namespace hpqf::observe {
namespace {
namespace fs = std::filesystem;

// A machine made of files.
struct Machine {
  fs::path root = fs::path(::testing::TempDir()) /
                  ("machine-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  Machine() {
    fs::remove_all(root);
    put("proc/self/stat", "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0");
    put("proc/self/statm", "1000 512 3 4 5 6 7");
    put("proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\n");
  }
  ~Machine() { fs::remove_all(root); }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  }
  void rapl(double microjoules) const {
    put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000");
    put("sys/class/powercap/intel-rapl:0/energy_uj", std::to_string(static_cast<int64_t>(microjoules)) + "\n");
  }
};

TEST(HostProbe, ReadsTimesMemoryAndLimits) {
  const Machine machine;
  HostProbe probe(machine.root.string());
  const HostReading r = probe.read();
  EXPECT_DOUBLE_EQ(*r.cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_DOUBLE_EQ(*r.resident_bytes, 512.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_DOUBLE_EQ(*probe.limits().memory_bytes, 8388608.0 * 1024);
  EXPECT_FALSE(r.energy_joules);
  ASSERT_EQ(probe.missing().size(), 1u);
  EXPECT_NE(probe.missing()[0].find("no RAPL"), std::string::npos);
}

TEST(HostProbe, ContainersHaveSmallerLimits) {
  const Machine machine;
  machine.put("sys/fs/cgroup/cpu.max", "25000 100000\n");
  machine.put("sys/fs/cgroup/memory.max", "1073741824\n");
  const HostProbe probe(machine.root.string());
  EXPECT_DOUBLE_EQ(probe.limits().cpus, 0.25);
  EXPECT_NE(probe.limits().cpus_source.find("quota"), std::string::npos);
  EXPECT_DOUBLE_EQ(*probe.limits().memory_bytes, 1073741824);
  machine.put("sys/fs/cgroup/cpu.max", "max 100000\n");
  machine.put("sys/fs/cgroup/memory.max", "max\n");
  const HostProbe open(machine.root.string());
  EXPECT_GE(open.limits().cpus, 1);
  EXPECT_DOUBLE_EQ(*open.limits().memory_bytes, 8388608.0 * 1024);
}

TEST(HostProbe, EnergyCountersWrapAround) {
  const Machine machine;
  machine.rapl(999'000'000);
  HostProbe probe(machine.root.string());
  const double before = *probe.read().energy_joules;
  machine.rapl(1'000'000);
  EXPECT_NEAR(*probe.read().energy_joules - before, 2, 1e-9);
}

TEST(HostProbe, AnEmptyMachineSaysWhatIsMissing) {
  HostProbe probe("/no/such/root");
  EXPECT_FALSE(probe.read().cpu_seconds);
  EXPECT_EQ(probe.missing().size(), 3u);
}

struct Rig {
  Machine machine;
  int64_t now = 1'000'000'000;
  double wall = 1e9;
  MonitorOptions options;
  Rig() {
    options.every = 2;
    options.root = machine.root.string();
    options.wall_clock = [this] { return wall; };
    options.steady_clock = [this] { return now; };
  }
  StepFacts step(int64_t n, double loss = 2) {
    now += 500'000'000;
    wall += 0.5;
    return {.step = n, .samples = 8, .loss = loss, .seconds = 0.4};
  }
  std::string file() const { return (machine.root / "monitor.jsonl").string(); }
};

TEST(Monitor, RowsCarryTheNamesAndTheArithmetic) {
  Rig rig;
  rig.options.path = rig.file();
  rig.options.cost = {.price_per_hour = 3600, .fp32_ratio = 1.5, .samples_per_epoch = 100, .watts = 50};
  Monitor monitor(rig.options);
  EXPECT_FALSE(monitor.observe(rig.step(1, 1)).row);
  const MonitorVerdict verdict = monitor.observe(rig.step(2, 3));
  ASSERT_TRUE(verdict.row);
  const MonitorRow& row = *verdict.row;
  const auto expect = [&](const char* name, double value) {
    ASSERT_TRUE(row.find(name)) << name;
    EXPECT_NEAR(*row.find(name), value, 1e-9) << name;
  };
  expect("loss_metrics/global_avg_loss", 2);
  expect("loss_metrics/global_max_loss", 3);
  expect("time_metrics/end_to_end(s)", 0.45);  // 0.4 of the first step, 0.5 to the end of the second
  expect("time_metrics/data_loading(s)", 0.05);
  expect("throughput(samples/s)", 16 / 0.9);
  expect("cost/usd_total", 0.9);
  expect("cost/usd_per_1k_samples", 0.9 / 16 * 1000);
  expect("cost/usd_per_epoch", 0.9 / 16 * 100);
  expect("cost/usd_saved_vs_fp32", 0.45);
  expect("energy/kwh", 45 / 3.6e6);
  const auto json = nlohmann::json::parse(base::read_file(rig.file()));
  EXPECT_EQ(json["basis"]["energy/kwh"], "estimated: 50 W at all times (given)");
  EXPECT_EQ(json["step"], 2);
  EXPECT_FALSE(json["basis"].contains("throughput(samples/s)"));
}

TEST(Monitor, EnergyIsUnknownWithoutACounterOrAPower) {
  Rig rig;
  Monitor monitor(rig.options);
  monitor.observe(rig.step(1));
  const MonitorRow row = *monitor.observe(rig.step(2)).row;
  EXPECT_FALSE(row.find("energy/kwh"));
  EXPECT_NE(std::ranges::find(row.unknown, "energy/kwh"), row.unknown.end());
}

TEST(Monitor, ComputeComesFromTheDifferenceOfTwoAudits) {
  Rig rig;
  rig.options.rates.peaks[Format::fp32] = {1e12, "measured", "by hand"};
  Monitor monitor(rig.options);
  AuditReport audit;
  audit.rows.push_back({.layer = "a", .effective_a = "bf16", .effective_b = "bf16", .implementation = "emulated"});
  for (int64_t n = 1; n <= 4; ++n) {
    audit.rows[0].flops += 1e11;
    audit.rows[0].bytes += 1e9;
    const MonitorVerdict verdict = monitor.observe(rig.step(n), &audit);
    if (n < 4) continue;
    EXPECT_NEAR(*verdict.row->find("tflops"), 0.2, 1e-9);  // two steps in one second
    EXPECT_NEAR(*verdict.row->find("mfu(%)"), 20, 1e-9);
    EXPECT_NEAR(*verdict.row->find("utilisation(%)"), 20, 1e-9);
    EXPECT_NEAR(*verdict.row->find("precision/share_fp32"), 1, 1e-9);  // emulated: computed in fp32
    EXPECT_NEAR(*verdict.row->find("memory/counted_bandwidth(GB/s)"), 2, 1e-9);
  }
}

TEST(Monitor, DecayAgainstAReferenceRun) {
  Rig rig;
  rig.machine.put("metrics.jsonl",
                  "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":2}\nrubbish\n{\"step\":3,\"loss\":null}\n"
                  "{\"step\":4,\"loss\":2}\n{\"st");
  rig.options.reference = (rig.machine.root / "metrics.jsonl").string();
  Monitor monitor(rig.options);
  monitor.observe(rig.step(1, 2.2));
  EXPECT_NEAR(*monitor.observe(rig.step(2, 2.2)).row->find("loss_metrics/decay"), 0.1, 1e-9);
  monitor.observe(rig.step(5, 2.2));  // the reference is over
  EXPECT_FALSE(monitor.observe(rig.step(6, 2.2)).row->find("loss_metrics/decay"));
  EXPECT_THROW(ReferenceRun::parse("{}\n", "x"), Error);
}

TEST(Monitor, NumericsAreADistributionOverLayers) {
  Rig rig;
  Monitor monitor(rig.options);
  std::vector<GradientObservation> seen;
  for (int i = 0; i < 11; ++i) {
    GradientObservation weight{.step = 2, .layer = "l" + std::to_string(i), .subject = Subject::weight, .elements = 10};
    weight.sqnr_db = 20 + i;
    weight.update_ratio = 0.001 * (i + 1);
    seen.push_back(weight);
  }
  GradientObservation gradient{.step = 2, .layer = "l0", .elements = 30};
  gradient.underflow = 0.5;
  seen.push_back(gradient);
  monitor.observe(rig.step(1));
  const MonitorRow row = *monitor.observe(rig.step(2), nullptr, seen).row;
  EXPECT_DOUBLE_EQ(*row.find("quant/mse_db_median"), -25);
  EXPECT_DOUBLE_EQ(*row.find("quant/mse_db_max"), -20);
  EXPECT_DOUBLE_EQ(*row.find("quant/mse_db{l0}"), -20);
  EXPECT_FALSE(row.find("quant/mse_db{l9}"));
  EXPECT_DOUBLE_EQ(*row.find("quant/underflow_rate"), 0.5);
  EXPECT_DOUBLE_EQ(*row.find("update/ratio_max"), 0.011);
}

TEST(Monitor, AFullDiskIsSaidOnceAndTrainingGoesOn) {
  Rig rig;
  rig.options.path = "/dev/full";
  rig.options.every = 1;
  Monitor monitor(rig.options);
  int said = 0;
  for (int64_t n = 1; n <= 50; ++n) {
    const MonitorVerdict verdict = monitor.observe(rig.step(n));
    ASSERT_TRUE(verdict.row);
    for (const std::string& note : verdict.row->notes) said += note.find("cannot be written") != std::string::npos;
  }
  EXPECT_EQ(said, 1);
}

TEST(Monitor, AClockThatJumpsBackIsNotedAndHarmless) {
  Rig rig;
  rig.options.every = 1;
  Monitor monitor(rig.options);
  monitor.observe(rig.step(1));
  rig.wall -= 3600;
  const MonitorRow row = *monitor.observe(rig.step(2)).row;
  ASSERT_FALSE(row.notes.empty());
  EXPECT_NE(row.notes.back().find("went back by 3599"), std::string::npos) << row.notes.back();
  EXPECT_NEAR(*row.find("time_metrics/end_to_end(s)"), 0.5, 1e-9);
  rig.now -= 5'000'000'000;  // even the steady clock
  EXPECT_GE(*monitor.observe(rig.step(3)).row->find("time_metrics/end_to_end(s)"), 0.4);
}

TEST(Monitor, AProbeThatDiesMidwayGivesUnknown) {
  Rig rig;
  rig.options.every = 1;
  rig.machine.rapl(1000);
  Monitor monitor(rig.options);
  monitor.observe(rig.step(1));
  fs::remove_all(rig.machine.root / "sys");
  fs::remove_all(rig.machine.root / "proc");
  const MonitorRow row = *monitor.observe(rig.step(2)).row;
  EXPECT_EQ(row.unknown, (std::vector<std::string>{"cpu/utilisation(%)", "memory/rss(GiB)", "energy/kwh"}));
}

TEST(Monitor, RefusesImpossibleOptions) {
  EXPECT_THROW(Monitor({.every = 0}), Error);
  EXPECT_THROW(Monitor({.cost = {.price_per_hour = -1}}), Error);
  EXPECT_THROW(Monitor({.reference = "/no/such/file"}), Error);
  EXPECT_THROW(Monitor({.path = "x", .max_bytes = 10}), Error);
}

MonitorRow row_of(double value, const char* metric = "m") {
  MonitorRow row;
  row.add(metric, value);
  return row;
}

struct Judge {
  std::vector<AlertRule> rules;
  AlertState state;
  size_t operator()(const MonitorRow& row) {
    AlertDecision decision = evaluate(rules, state, row);
    state = std::move(decision.state);
    return decision.alerts.size();
  }
};

TEST(AlertRules, SamplesHysteresisAndCoolDown) {
  Judge judge{{{.rule = "r", .metric = "m", .threshold = 10, .clear = 5, .samples = 2, .cool_down = 3}}, {}};
  EXPECT_EQ(judge(row_of(11)), 0u);
  EXPECT_EQ(judge(row_of(9)), 0u);  // not one after another
  EXPECT_EQ(judge(row_of(11)), 0u);
  EXPECT_EQ(judge(row_of(11)), 1u);
  EXPECT_EQ(judge(row_of(1)), 0u);
  EXPECT_EQ(judge(row_of(12)) + judge(row_of(12)), 0u);                     // cooling down
  EXPECT_EQ(judge(row_of(7)) + judge(row_of(12)) + judge(row_of(12)), 0u);  // 7 is not yet over
  EXPECT_EQ(judge(MonitorRow{}), 0u);                                       // no such metric: nothing changes
  EXPECT_EQ(judge(row_of(4)) + judge(row_of(12)), 0u);
  EXPECT_EQ(judge(row_of(12)), 1u);
}

TEST(AlertRules, BelowNonfiniteAndPatterns) {
  Judge below{{{.rule = "r", .metric = "m", .comparison = Comparison::below, .threshold = 1, .clear = 2}}, {}};
  EXPECT_EQ(below(row_of(1)), 0u);
  EXPECT_EQ(below(row_of(0.5)), 1u);
  Judge bad{{{.rule = "r", .metric = "m", .comparison = Comparison::nonfinite}}, {}};
  EXPECT_EQ(bad(row_of(1e300)), 0u);
  EXPECT_EQ(bad(row_of(std::nan(""))), 1u);
  EXPECT_EQ(bad(row_of(std::nan(""))), 0u);
  Judge star{{{.rule = "r", .metric = "q{*}", .threshold = 1, .clear = 1}}, {}};
  MonitorRow two = row_of(2, "q{a}");
  two.add("q{b}", 3);
  two.add("q", 9);
  EXPECT_EQ(star(two), 2u);
  Judge nan{{{.rule = "r", .metric = "m", .threshold = 1, .clear = 1}}, {}};
  EXPECT_EQ(nan(row_of(std::nan(""))), 0u);  // `above` says nothing of NaN
}

TEST(AlertRules, StopReachesTheVerdict) {
  Rig rig;
  rig.options.every = 1;
  rig.options.rules = {{.rule = "r",
                        .metric = "loss_metrics/global_avg_loss",
                        .comparison = Comparison::nonfinite,
                        .action = AlertAction::stop}};
  Monitor monitor(rig.options);
  EXPECT_FALSE(monitor.observe(rig.step(1)).stop);
  const MonitorVerdict verdict = monitor.observe(rig.step(2, std::nan("")));
  EXPECT_TRUE(verdict.stop);
  EXPECT_EQ(verdict.row->alerts.size(), 1u);
}

TEST(AlertRules, SurviveJsonAndRefuseNonsense) {
  EXPECT_EQ(alert_rules_from_json(to_json(default_alert_rules())), default_alert_rules());
  const auto rules = [](const char* rule) {
    return alert_rules_from_json(std::string(R"({"schema":"hpqf.alerts","version":1,"rules":[)") + rule + "]}");
  };
  EXPECT_EQ(rules(R"({"rule":"a","metric":"m","comparison":"above","threshold":2,"action":"log"})").at(0).clear, 2);
  for (const char* bad : {R"({"rule":"a","metric":"m","comparison":"over","threshold":2,"action":"log"})",
                          R"({"rule":"a","metric":"m","comparison":"above","action":"log"})",
                          R"({"rule":"a","metric":"m","comparison":"above","threshold":2,"clear":3,"action":"log"})",
                          R"({"rule":"a","metric":"m","comparison":"above","threshold":2,"action":"shout"})",
                          R"({"rule":"","metric":"m","comparison":"nonfinite","action":"log"})"})
    EXPECT_THROW(rules(bad), Error) << bad;
}

}  // namespace
}  // namespace hpqf::observe
