// How much ran in which format, by FLOPs and by time.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/observe/human.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

struct Part {
  std::string css, name, label;  // the label is written into the bar
  double share;
};

std::string bar(const std::string& title, const std::vector<Part>& parts) {
  std::string spoken, inside;
  for (const Part& part : parts) {
    if (part.share <= 0) continue;
    spoken += fmt::format("{}{} {} %", spoken.empty() ? "" : ", ", part.name, percent(part.share));
    inside += fmt::format("<span class=\"part {}\" style=\"width:{:.3f}%\">{}</span>", part.css, 100 * part.share,
                          part.share > 0.25   ? html::escaped(part.name)
                          : part.share > 0.09 ? html::escaped(part.label)
                                              : "");
  }
  return fmt::format(
      "<div class=\"share\"><b>{0}</b><div class=\"bar\" role=\"img\" aria-label=\"{0}: {1}\">{2}</div>"
      "</div>\n",
      html::escaped(title), html::escaped(spoken), inside);
}

std::string bars(const AuditReport& audit, const std::string& suffix) {
  std::vector<Part> flops, time;
  const double counted = audit.counted_seconds(), base = audit.base_seconds();
  double rest = 1;
  for (const AuditReport::Share& share : audit.shares()) {
    const std::string css = format_class(share.format) + (share.emulated ? " emulated" : "");
    const std::string name = share.format + (share.emulated ? " emulated" : "");
    flops.push_back({css, name, share.format, share.flops});
    const double part = base > 0 ? share.seconds * counted / base : 0;
    rest -= part;
    time.push_back({css, name, share.format, part});
  }
  if (audit.total_seconds > 0 && rest > 0.0005) time.push_back({"uncounted", "not counted", "other", rest});
  return bar("FLOPs in GEMMs" + suffix, flops) +
         bar((audit.total_seconds > 0 ? "Wall time of steps" : "Counted time") + suffix, time);
}

std::string shares_table(const AuditReport& audit) {
  const double counted = audit.counted_seconds(), base = audit.base_seconds();
  std::vector<std::vector<std::string>> rows;
  for (const AuditReport::Share& share : audit.shares()) {
    const std::string css = format_class(share.format) + (share.emulated ? " emulated" : "");
    rows.push_back({fmt::format("<i class=\"swatch {}\"></i>{}", css, html::escaped(share.format)),
                    share.emulated ? "emulated" : "native", percent(share.flops) + " %",
                    base > 0 ? percent(share.seconds * counted / base) + " %" : "-"});
  }
  return html::table({"format", "arithmetic", "FLOPs", "time"}, rows, {2, 3}, "Share of each format");
}

std::string uncounted(const AuditReport& audit) {
  if (audit.uncounted.empty()) return "";
  std::vector<UncountedOp> ops = audit.uncounted;
  std::stable_sort(ops.begin(), ops.end(),
                   [](const UncountedOp& a, const UncountedOp& b) { return a.share_of_time > b.share_of_time; });
  double sum = 0;
  for (const UncountedOp& op : ops) sum += op.share_of_time;
  std::vector<std::vector<std::string>> rows;
  constexpr size_t kMost = 20;
  for (size_t i = 0; i < std::min(kMost, ops.size()); ++i)
    rows.push_back({html::escaped(ops[i].op), percent(ops[i].share_of_time) + " %", html::grouped(ops[i].calls)});
  return fmt::format(
      "<details><summary>Ops that no plan governs: {} % of the time of sampled steps</summary>{}{}"
      "</details>\n",
      percent(sum), html::table({"op", "time", "calls in samples"}, rows, {1, 2}, "Uncounted ops"),
      ops.size() > kMost ? html::hint(fmt::format("{} more are in audit.json.", ops.size() - kMost)) : "");
}

}  // namespace

std::string share_section(const RunRecord& run, const RunRecord* other) {
  if (!run.audit) {
    return html::section("share", "Precision share", "", "",
                         html::hint("What really ran is in audit.json, which a run writes at its end. "
                                    "<code>hpqf train --resume --out DIR</code> goes on with a run that was stopped."));
  }
  const AuditReport& audit = *run.audit;
  std::string body = bars(audit, "");
  if (other && other->audit) body += bars(*other->audit, ", compared run");
  body += shares_table(audit);
  body +=
      "<p class=\"small\">A GEMM counts under the narrower of its two operands. Emulated: operands were rounded to the "
      "format and the arithmetic ran in fp32, which gives the numbers of the format, not its speed.</p>\n";
  body += uncounted(audit);
  return html::section(
      "share", "Precision share", "measured",
      fmt::format("audit.json, {}, {} in GEMMs", html::step_count(audit.steps), human_flops(audit.counted_flops())),
      body);
}

}  // namespace hpqf::observe
