// Where what ran is not what was asked for, and where it ran without the speed of its format; with the reasons.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hpqf/observe/human.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

struct Group {
  std::string requested, effective, implementation, reason;
  std::vector<std::string> layers;
  double flops = 0;
};

std::string pair_text(const std::string& a, const std::string& b) { return a == b ? a : a + " × " + b; }

template <class Wanted>
std::vector<Group> groups(const AuditReport& audit, Wanted&& wanted) {
  std::vector<Group> out;
  for (const AuditRow& row : audit.rows) {
    if (!wanted(row)) continue;
    const std::string requested = pair_text(row.requested_a, row.requested_b),
                      effective = pair_text(row.effective_a, row.effective_b);
    auto it = std::find_if(out.begin(), out.end(), [&](const Group& g) {
      return std::tie(g.requested, g.effective, g.implementation, g.reason) ==
             std::tie(requested, effective, row.implementation, row.reason);
    });
    if (it == out.end()) it = out.insert(it, {requested, effective, row.implementation, row.reason, {}, 0});
    it->flops += row.flops;
    if (std::find(it->layers.begin(), it->layers.end(), row.layer) == it->layers.end()) it->layers.push_back(row.layer);
  }
  std::stable_sort(out.begin(), out.end(), [](const Group& a, const Group& b) { return a.flops > b.flops; });
  return out;
}

std::string layer_list(const std::vector<std::string>& layers) {
  constexpr size_t kFew = 3, kMost = 200;
  std::string few, all;
  for (size_t i = 0; i < std::min(kFew, layers.size()); ++i) few += (i ? ", " : "") + html::layer_name(layers[i]);
  if (layers.size() <= kFew) return few;
  for (size_t i = kFew; i < std::min(kMost, layers.size()); ++i)
    all += (i > kFew ? ", " : "") + html::layer_name(layers[i]);
  if (layers.size() > kMost) all += fmt::format(" and {} more", layers.size() - kMost);
  return fmt::format("{}<details class=\"inline\"><summary>{} more</summary>{}</details>", few, layers.size() - kFew,
                     all);
}

std::string group_table(std::vector<Group> groups, double flops, const char* caption) {
  constexpr size_t kMost = 40;
  const size_t left_out = groups.size() > kMost ? groups.size() - kMost : 0;
  if (left_out) groups.resize(kMost);
  std::vector<std::vector<std::string>> rows;
  for (const Group& group : groups)
    rows.push_back({layer_list(group.layers), html::escaped(group.requested), html::escaped(group.effective),
                    html::escaped(group.implementation),
                    group.flops > 0 && flops > 0 ? percent(group.flops / flops) + " %" : "-",
                    group.reason.empty() ? "(no reason given)" : html::escaped(group.reason)});
  return html::table({"layers", "requested", "effective", "implementation", "FLOPs", "reason"}, rows, {4}, caption,
                     true) +
         (left_out ? html::hint(fmt::format(
                         "{} more groups are in audit.json; <code>hpqf explain DIR</code> lists them.", left_out))
                   : "");
}

}  // namespace

std::string difference_section(const RunRecord& run, const std::vector<LayerFormats>& layers) {
  std::string body, source;
  if (!run.audit) {
    body = html::hint("Only an audit can say it: a run writes audit.json at its end.");
    return html::section("effective", "Requested and effective", "", "", body);
  }
  const AuditReport& audit = *run.audit;
  const auto other = groups(audit, [](const AuditRow& row) {
    return row.requested_a != row.effective_a || row.requested_b != row.effective_b;
  });
  if (other.empty())
    body += "<p class=\"good\">Every op ran in the formats that the plan asked for.</p>\n";
  else
    body += "<h3>Ran in another format than requested</h3>\n" +
            group_table(other, audit.counted_flops(), "Requested and effective formats that differ");
  const auto emulated = groups(audit, [](const AuditRow& row) { return row.implementation.starts_with("emulated"); });
  if (!emulated.empty())
    body += "<h3>Ran in the format, but emulated</h3>\n" + group_table(emulated, audit.counted_flops(), "Emulated ops");
  std::vector<std::string> idle;
  for (const LayerFormats& layer : layers)
    if (std::all_of(layer.operands.begin(), layer.operands.end(),
                    [](const OperandFormats& o) { return o.effective.empty(); }))
      idle.push_back(layer.layer);
  if (!idle.empty()) body += "<h3>Planned, but no GEMM ran</h3>\n<p>" + layer_list(idle) + "</p>\n";
  return html::section("effective", "Requested and effective", "measured",
                       fmt::format("audit.json, {}", html::step_count(audit.steps)), body);
}

}  // namespace hpqf::observe
