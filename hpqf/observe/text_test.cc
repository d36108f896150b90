// What people read: units, columns, the audit table and the explanation of a plan.
#include <gtest/gtest.h>

#include <sstream>

#include "hpqf/observe/audit.h"
#include "hpqf/observe/explain.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::observe {
namespace {

using plan::LayerKind;
using plan::ModelFacts;
using plan::PrecisionPlan;

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

// The line of `text` that starts with `start`, blanks run together.
std::string line_of(const std::string& text, const std::string& start) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    std::istringstream words(line);
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    return joined;
  }
  return "no line " + start;
}

TEST(Human, Units) {
  EXPECT_EQ(human_flops(0), "0 FLOP");
  EXPECT_EQ(human_flops(950), "950 FLOP");
  EXPECT_EQ(human_flops(1234), "1.23 kFLOP");
  EXPECT_EQ(human_flops(999.9e9), "1.00 TFLOP");
  EXPECT_EQ(human_flops(123.4e12), "123 TFLOP");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1.5 * 1024 * 1024 * 1024), "1.50 GiB");
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(272474), "272 k");
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(12.34e-6), "12.3 us");
  EXPECT_EQ(human_seconds(0.99951), "1.00 s");
  EXPECT_EQ(human_seconds(4.5e-3), "4.50 ms");
  EXPECT_EQ(human_seconds(123), "2 min 3 s");
  EXPECT_EQ(human_seconds(3599.7), "1 h 0 min");
  EXPECT_EQ(percent(0), "0");
  EXPECT_EQ(percent(0.0001), "<0.1");
  EXPECT_EQ(percent(0.12345), "12.3");
  EXPECT_EQ(percent(1), "100.0");
}

TEST(TextTable, AlignsByCharacters) {
  TextTable table({{"name"}, {"n", true}, {"end"}});
  table.add({"\xc3\xa4\xc3\xb6\xc3\xbc", "1", "x"});  // three characters, six bytes
  table.add({"a", "1000", ""});
  EXPECT_EQ(table.text(),
            "name     n  end\n"
            "----  ----  ---\n"
            "\xc3\xa4\xc3\xb6\xc3\xbc      1  x\n"
            "a     1000\n");
}

TEST(Footnotes, LongTextsOnceEach) {
  Footnotes notes(5);
  EXPECT_EQ(notes.cell("short"), "short");
  EXPECT_EQ(notes.cell("longer"), "[1]");
  EXPECT_EQ(notes.cell("another"), "[2]");
  EXPECT_EQ(notes.cell("longer"), "[1]");
  EXPECT_EQ(notes.text(), "[1] longer\n[2] another\n");
}

AuditRow row(std::string layer, Pass pass, std::string requested, std::string effective, double flops, double seconds) {
  return {std::move(layer), flops > 0 ? "linear" : "softmax",           pass, requested, requested, effective,
          effective,        effective == "fp32" ? "torch" : "emulated", "",   1,         flops,     0,
          seconds};
}

AuditReport sample() {
  AuditReport report;
  report.rows = {row("fc1", Pass::forward, "bf16", "bf16", 60e9, 1.0),
                 row("fc1", Pass::wgrad, "bf16", "bf16", 30e9, 0.5), row("", Pass::forward, "fp32", "fp32", 0, 0.25),
                 row("fc2", Pass::forward, "bf16", "fp32", 10e9, 0.25)};
  report.rows[0].effective_b = "int8[1x128]";
  report.rows[3].reason = "rank-1 input and some more words, too long for a column";
  report.total_seconds = 4;
  report.steps = 8;
  report.uncounted = {{"relu", 0.05, 8}, {"add", 0.2, 16}};
  return report;
}

TEST(AuditTable, RowsSharesAndNotes) {
  const std::string text = sample().table();
  EXPECT_EQ(line_of(text, "layer"), "layer op pass requested effective implementation FLOPs % time % reason");
  EXPECT_EQ(line_of(text, "fc1"), "fc1 linear forward bf16 bf16/int8[1x128] emulated 60.0 25.0");
  EXPECT_EQ(line_of(text, "  "), "linear wgrad bf16 bf16 emulated 30.0 12.5") << "the layer's name once";
  EXPECT_EQ(line_of(text, "(model)"), "(model) softmax forward fp32 fp32 torch - 6.2");
  EXPECT_EQ(line_of(text, "fc2"), "fc2 linear forward bf16 fp32 torch 10.0 6.2 [1]");
  EXPECT_CONTAINS(text, "\n[1] rank-1 input");
  EXPECT_CONTAINS(text, "100 GFLOP in GEMMs, 8 steps, 4.00 s wall time; the ops above took 2.00 s of it (50.0 %)");
  EXPECT_EQ(line_of(text, "int8"), "int8 emulated 60.0 25.0");
  EXPECT_EQ(line_of(text, "bf16"), "bf16 emulated 30.0 12.5");
  EXPECT_EQ(line_of(text, "fp32"), "fp32 native 10.0 12.5");
  EXPECT_CONTAINS(text, "25.0 % of the time (add 20.0, relu 5.0)");
}

TEST(AuditTable, MaxRowsKeepsTheLongest) {
  const std::string text = sample().table(2);
  EXPECT_EQ(line_of(text, "fc1"), "fc1 linear forward bf16 bf16/int8[1x128] emulated 60.0 25.0");
  EXPECT_CONTAINS(text, "wgrad");
  EXPECT_LACKS(text, "fc2");
  EXPECT_EQ(line_of(text, "(2 more rows)"), "(2 more rows) 10.0 12.5");
  EXPECT_EQ(sample().table(4), sample().table());
}

TEST(AuditTable, NothingRan) {
  const std::string text = AuditReport{}.table();
  EXPECT_CONTAINS(text, "0 FLOP in GEMMs");
  EXPECT_LACKS(text, "nan");
  AuditReport untimed = sample();
  untimed.total_seconds = 0;
  EXPECT_CONTAINS(untimed.table(), "2.00 s in the ops above; time % is of that");
}

ModelFacts net() {
  return {"Net",
          {{"", "Net", LayerKind::other, 0},
           {"fc1", "Linear", LayerKind::linear, 12000},
           {"norm", "LayerNorm", LayerKind::norm, 64},
           {"fc2", "Linear", LayerKind::linear, 650},
           {"fc3", "Linear", LayerKind::linear, 10}}};
}

TEST(Explain, PlanAloneShowsWhatEachLayerResolvesTo) {
  const std::string text = explain(PrecisionPlan::with_sensitive("fp8", {"fc2"}), net());
  EXPECT_CONTAINS(text, "plan: epoch 0, 2 rules; model: Net, 5 layers, 12.7 k parameters");
  EXPECT_EQ(line_of(text, "fc1"), "fc1 Linear 12.0 k fp8_e4m3 fp8_e4m3 fp8_e5m2 fp8_e5m2 asked by the user");
  EXPECT_EQ(line_of(text, "fc2"), "fc2 Linear 650 fp32 fp32 fp32 fp32 sensitive: asked by the user");
  EXPECT_EQ(line_of(text, "norm"), "norm LayerNorm 64 fp32 fp32 fp32 fp32 rule: norm in fp32");
  EXPECT_CONTAINS(text, "1 container without parameters not listed");
  EXPECT_LACKS(text, "(model)");
}

TEST(Explain, RulesWhenThereIsNoModel) {
  const std::string text = explain(PrecisionPlan::with_sensitive("bf16", {"fc2", "head.*"}), {});
  EXPECT_EQ(line_of(text, "head.*"), "head.* fp32 fp32 fp32 fp32 sensitive: asked by the user");
  EXPECT_EQ(line_of(text, "* "), "* bf16 bf16 bf16 bf16 asked by the user");
}

TEST(Explain, WithAnAudit) {
  AuditReport audit = sample();
  audit.rows.push_back(row("unknown.layer", Pass::dgrad, "bf16", "bf16", 1e9, 0));
  const PrecisionPlan plan = PrecisionPlan::with_sensitive("bf16", {})
                                 .with_rule({"=fc2", plan::uniform_precision("fp32", "fallback: it overflowed")});
  const std::string text = explain(plan, net(), &audit);
  EXPECT_EQ(line_of(text, "layer"), "layer op role requested effective implementation FLOPs % time % reason");
  EXPECT_EQ(line_of(text, "fc1"), "fc1 linear input bf16 bf16 emulated 59.4 25.0 asked by the user");
  EXPECT_CONTAINS(text, "int8[1x128]");
  EXPECT_EQ(line_of(text, "fc2"), "fc2 linear input, weight bf16 fp32 torch 9.9 6.2 [1]");
  EXPECT_CONTAINS(text, "[1] now fp32: fallback: it overflowed; rank-1 input");
  EXPECT_EQ(line_of(text, "fc3"), "fc3 - input bf16 did not run asked by the user");
  EXPECT_EQ(line_of(text, "unknown.layer"), "unknown.layer linear dgrad bf16 bf16 emulated 1.0 0 asked by the user");
  EXPECT_LT(text.find("(model)"), text.find("fc1")) << "definition order, not the order of the audit";
  EXPECT_CONTAINS(text, "in GEMMs, 8 steps");
}

}  // namespace
}  // namespace hpqf::observe
