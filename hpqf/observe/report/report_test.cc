#include "hpqf/observe/report/report.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "hpqf/observe/report/axis.h"
#include "hpqf/observe/report/effective.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/line_chart.h"
#include "hpqf/observe/run/fixtures_test.h"

namespace hpqf::observe {
namespace {

constexpr const char* kEvil = "</script><img src=x onerror=alert(1)>\"'&";

plan::ModelFacts facts_of(const std::vector<std::string>& layers) {
  plan::ModelFacts facts{"Model", {}};
  for (const std::string& name : layers) facts.layers.push_back({name, "Linear", plan::LayerKind::linear, 100});
  return facts;
}

TEST(Html, EscapesWhateverARunSays) {
  EXPECT_EQ(html::escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(html::escaped(std::string("\0\x1b", 2)), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(html::escaped("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(html::layer_name(""), "(model)");
  EXPECT_EQ(html::layer_name("a.<b>"), "a.<wbr>&lt;b&gt;");
  EXPECT_EQ(html::script_json("\"</script>\""), "\"\\u003c/script>\"");
  EXPECT_EQ(html::grouped(0), "0");
  EXPECT_EQ(html::grouped(-1234567), "-1,234,567");
  EXPECT_EQ(html::grouped(999), "999");
  EXPECT_EQ(html::number(std::nan("")), "nan");
  EXPECT_EQ(html::number(12345), "12,345");
}

TEST(Axis, TicksAreRoundAndInside) {
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 1}, {-3, 7}, {1, 1e6}, {0.001, 0.0012}, {5, 5}, {0, 0}, {-1e300, 1e300}, {1e-300, 2e-300}}) {
    for (const int most : {2, 5, 7}) {
      const std::vector<Tick> ticks = Axis(low, high, false, true).ticks(most);
      EXPECT_GE(ticks.size(), 1u) << low << " " << high;
      EXPECT_LE(ticks.size(), static_cast<size_t>(most) + 1);
      for (size_t i = 0; i < ticks.size(); ++i) {
        EXPECT_GE(ticks[i].position, 0);
        EXPECT_LE(ticks[i].position, 1);
        if (i) {
          EXPECT_GT(ticks[i].position, ticks[i - 1].position);
          EXPECT_NE(ticks[i].label, ticks[i - 1].label);
        }
      }
    }
  }
  std::vector<std::string> labels;
  for (const Tick& tick : Axis(0, 1, false, false).ticks(6)) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  labels.clear();
  for (const Tick& tick : Axis(1, 65536, true, false).ticks(6)) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"1", "10", "100", "1000", "10k"}));
  EXPECT_DOUBLE_EQ(Axis(1, 100, true, false).at(10), 0.5);
  EXPECT_EQ(Axis(1, 100, true, false).at(-1), 0);
  EXPECT_EQ(Axis(0, 1, false, false).at(7), 1);
}

TEST(LineChart, DrawsNothingWithoutFiniteValues) {
  Series series;
  EXPECT_EQ(draw({.id = "x", .title = "X"}), "");
  series.add(1, std::nan(""));
  EXPECT_EQ(draw({.id = "x", .title = "X", .curves = {{"x", &series}}}), "");
  series.add(2, 1);
  const std::string chart = draw({.id = "x", .title = kEvil, .curves = {{kEvil, &series}}});
  EXPECT_HAS(chart, "<svg");
  EXPECT_HAS_NOT(chart, "<img");
  EXPECT_HAS_NOT(chart, "nan\"") << "no NaN reaches a drawing";
}

TEST(LineChart, BreaksWhereNothingIsFinite) {
  Series series;
  for (int64_t step = 1; step <= 9; ++step) series.add(step, step == 5 ? std::nan("") : 1.0);
  const std::string chart = draw({.id = "x", .title = "X", .curves = {{"x", &series}}});
  const size_t line = chart.find("<path class=\"line\"");
  const std::string d = chart.substr(line, chart.find("/>", line) - line);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 2) << d;
}

TEST(Effective, PlanAndAuditSideBySide) {
  const plan::PrecisionPlan plan = plan::PrecisionPlan::with_sensitive("int8", {"b"});
  const AuditReport audit = made_audit();
  const std::vector<LayerFormats> layers = layer_formats(&plan, facts_of({"a", "b", "idle"}), &audit);
  ASSERT_EQ(layers.size(), 3u);
  const auto& a = layers[0].operands;
  EXPECT_EQ(a[static_cast<size_t>(Operand::input)].effective, "int8");
  EXPECT_FALSE(a[static_cast<size_t>(Operand::input)].emulated);
  const OperandFormats& dgrad = a[static_cast<size_t>(Operand::dgrad)];
  EXPECT_EQ(dgrad.requested, "int8");
  EXPECT_EQ(dgrad.effective, "bf16");
  EXPECT_TRUE(dgrad.emulated && dgrad.differs());
  EXPECT_EQ(dgrad.reason, "int8 has no dgrad here");
  EXPECT_EQ(a[static_cast<size_t>(Operand::wgrad)].effective, "") << "did not run";
  EXPECT_EQ(layers[0].flops, 800);
  EXPECT_EQ(layers[1].operands[0].requested, "fp32");
  EXPECT_EQ(layers[2].operands[0].effective, "");
  EXPECT_EQ(layers[2].operands[0].requested, "int8");
  EXPECT_EQ(layer_formats(nullptr, {}, &audit).size(), 2u) << "an audit alone names its layers";
  EXPECT_EQ(layer_formats(nullptr, {}, &audit)[0].operands[1].requested, "int8");
  EXPECT_TRUE(layer_formats(nullptr, {}, nullptr).empty());
  EXPECT_EQ(element_format("int8[1x64]"), "int8");
}

TEST(Report, AnEmptyRecordIsAPageThatSaysWhatIsMissing) {
  RunRecord run;
  run.folder = "runs/x";
  const std::string page = html_report(run);
  for (const char* part : {"There are no steps", "audit.json", "hpqf cost", "Alerts", "</html>"})
    EXPECT_HAS(page, part);
  EXPECT_EQ(page, html_report(run)) << "the same bytes";
}

// Whatever a user calls a layer, a setting or a file stays text.
TEST(Report, NothingOfARunIsHtml) {
  RunRecord run;
  run.folder = kEvil;
  run.settings = {{"model", kEvil}, {kEvil, kEvil}, {"sensitive", kEvil}};
  run.plan = plan::PrecisionPlan({{"*", plan::uniform_precision("int8", kEvil)}});
  run.facts = facts_of({kEvil, "b"});
  run.facts.layers[0].type = kEvil;
  run.audit = made_audit();
  for (AuditRow& row : run.audit->rows) row.layer = row.reason = row.op = row.implementation = kEvil;
  run.audit->uncounted = {{kEvil, 0.1, 3}};
  run.notes = {kEvil};
  run.steps = run.skipped = run.changes = 1;
  run.loss.add(1, 2);
  run.skipped_steps = {{1, kEvil}};
  run.change_texts = {{1, kEvil}};
  run.history = {{1, 1, {{kEvil, kEvil, kEvil, kEvil, kEvil}}}};
  run.alerts = {{1, kEvil, kEvil, kEvil, kEvil}};
  run.monitored.emplace(kEvil, Series()).first->second.add(1, 2);
  run.monitored.at(kEvil).add(2, 3);
  run.memory = run.cost = {{kEvil, kEvil}, {"x.value", "1"}, {"x.basis", kEvil}, {"x.source", kEvil}};
  for (const RunRecord* other : {static_cast<const RunRecord*>(nullptr), static_cast<const RunRecord*>(&run)}) {
    const std::string page = html_report(run, other);
    EXPECT_HAS_NOT(page, "<img");
    EXPECT_HAS_NOT(page, "onerror=alert(1)>\"'");
    size_t opened = 0, closed = 0;
    for (size_t at = 0; (at = page.find("<script", at)) != std::string::npos; ++at) ++opened;
    for (size_t at = 0; (at = page.find("</script", at)) != std::string::npos; ++at) ++closed;
    EXPECT_EQ(opened, closed) << "no text ends a script";
  }
}

TEST(Report, LoadsNothing) {
  RunRecord run;
  run.audit = made_audit();
  run.steps = 1;
  run.loss.add(1, 2);
  const std::string page = html_report(run);
  for (const char* outside : {"http://", "https://", "//cdn", "@import", "url(", "src="}) EXPECT_HAS_NOT(page, outside);
  EXPECT_HAS(page, "default-src 'none'");
}

TEST(Report, WhatDiffersIsThereWithItsReason) {
  RunRecord run;
  run.audit = made_audit();
  run.plan = plan::PrecisionPlan::uniform("int8", "asked by the user");
  run.facts = facts_of({"a", "b"});
  std::string page = html_report(run);
  EXPECT_HAS(page, "Ran in another format than requested");
  EXPECT_HAS(page, "int8 has no dgrad here");
  EXPECT_HAS(page, "80.0 %");
  for (AuditRow& row : run.audit->rows) row.effective_a = row.effective_b = row.requested_a;
  EXPECT_HAS(html_report(run), "Every op ran in the formats that the plan asked for");
}

TEST(Report, AThousandLayersAndAMillionStepsFitIn2MB) {
  RunRecord run;
  run.folder = "runs/large";
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("encoder.layers." + std::to_string(i) + ".attention.self.query");
  run.facts = facts_of(names);
  std::vector<plan::Rule> rules;
  AuditReport audit;
  audit.total_seconds = 100;
  for (int i = 0; i < 1000; ++i) {
    const std::string reason = "sensitivity " + std::to_string(i) + " dB of this layer, measured";
    rules.push_back({"=" + names[static_cast<size_t>(i)], plan::uniform_precision("int8", reason)});
    for (const Pass pass : {Pass::forward, Pass::dgrad, Pass::wgrad})
      audit.rows.push_back({names[static_cast<size_t>(i)], "linear", pass, "int8", "int8", "bf16", "bf16", "emulated",
                            "layer " + std::to_string(i) + ": overflow", 1, 1e6, 0, 0.01});
  }
  rules.push_back({"*", plan::uniform_precision("fp32")});
  run.plan = plan::PrecisionPlan(rules);
  run.audit = audit;
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t step = 1; step <= 1000000; ++step) {
    const double x = 2 + std::sin(static_cast<double>(step * step % 1009));
    for (Series* series : {&run.loss, &run.grad_norm, &run.loss_scale, &run.lr, &run.samples_per_second})
      series->add(step, x);
    if (step % 997 == 0 && run.skipped_steps.size() < RunRecord::kLongestList)
      run.skipped_steps.push_back({step, "layer x: 3 gradients not finite"});
  }
  run.steps = run.last_step = 1000000;
  run.skipped = 1003;
  const std::string page = html_report(run, &run);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LT(page.size(), size_t{2} << 20);
  RecordProperty("bytes", static_cast<int>(page.size()));
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace hpqf::observe
