// The plan over time: which operands changed their format, when and why; and what a comparison of two plans says.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpqf/observe/report/axis.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

struct Lane {
  std::string layer, role;
  std::vector<std::pair<int64_t, std::string>> formats;  // from which step on
};

std::vector<Lane> lanes(const RunRecord& run) {
  std::vector<Lane> out;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const PlanChange& change : run.history) {
    for (const plan::Change& c : change.changes) {
      const auto [it, fresh] = known.try_emplace({c.layer, c.role}, out.size());
      if (fresh) out.push_back({c.layer, c.role, {{run.first_step, c.from}}});
      out[it->second].formats.emplace_back(change.step, c.to);
    }
  }
  return out;
}

// A lane's stretches between the first step and the last.
std::string lane_html(const Lane& lane, int64_t first, int64_t last) {
  const double range = static_cast<double>(std::max<int64_t>(1, last - first));
  std::string inside, spoken;
  for (size_t i = 0; i < lane.formats.size(); ++i) {
    const int64_t from = std::clamp(lane.formats[i].first, first, last);
    const int64_t to = i + 1 < lane.formats.size() ? std::clamp(lane.formats[i + 1].first, first, last) : last;
    const std::string format = element_format(lane.formats[i].second);
    const double width = 100 * static_cast<double>(to - from) / range;
    inside += fmt::format("<span class=\"part {}\" style=\"width:{:.3f}%\">{}</span>", format_class(format), width,
                          width > 12 ? html::escaped(format) : "");
    spoken += fmt::format("{}{} from step {}", i ? ", " : "", format, html::grouped(lane.formats[i].first));
  }
  return fmt::format(
      "<div class=\"lane\"><b>{} <small>{}</small></b><div class=\"bar\" role=\"img\" "
      "aria-label=\"{}\">{}</div></div>\n",
      html::layer_name(lane.layer), html::escaped(lane.role), html::escaped(spoken), inside);
}

std::string ruler(int64_t first, int64_t last) {
  const Axis axis(static_cast<double>(first), static_cast<double>(last), false, false);
  std::string out = "<div class=\"lane ruler\" aria-hidden=\"true\"><b>step</b><div class=\"xlabels\">";
  const std::vector<Tick> ticks = axis.ticks(6);
  for (size_t i = 0; i < ticks.size(); ++i)
    out += fmt::format("<span style=\"left:{:.2f}%\"{}>{}</span>", 100 * ticks[i].position,
                       i % 2 ? " class=\"odd\"" : "", ticks[i].label);
  return out + "</div></div>\n";
}

std::string legend(const std::vector<Lane>& lanes) {
  std::vector<std::string> seen;
  for (const Lane& lane : lanes)
    for (const auto& [step, format] : lane.formats)
      if (std::find(seen.begin(), seen.end(), element_format(format)) == seen.end())
        seen.push_back(element_format(format));
  std::string out = "<p class=\"legend\">";
  for (const std::string& format : seen)
    out += fmt::format("<span><i class=\"swatch {}\"></i>{}</span> ", format_class(format), html::escaped(format));
  return out + "</p>\n";
}

}  // namespace

std::string history_section(const RunRecord& run) {
  std::string body;
  constexpr size_t kMostLanes = 60, kMostRows = 200;
  const std::vector<Lane> all = lanes(run);
  if (!all.empty()) {
    const int64_t last = std::max(run.last_step, run.history.back().step);
    body += legend(all) + "<div class=\"lanes\">\n";
    for (size_t i = 0; i < std::min(kMostLanes, all.size()); ++i) body += lane_html(all[i], run.first_step, last);
    body += ruler(run.first_step, last) + "</div>\n";
    if (all.size() > kMostLanes)
      body += html::hint(
          fmt::format("{} more operands changed; the table and history.jsonl have them.", all.size() - kMostLanes));
    std::vector<std::vector<std::string>> rows;
    size_t changes = 0;
    for (const PlanChange& change : run.history) {
      for (const plan::Change& c : change.changes) {
        if (++changes > kMostRows) continue;
        rows.push_back({html::grouped(change.step), html::layer_name(c.layer), html::escaped(c.role),
                        html::escaped(c.from), html::escaped(c.to), html::escaped(c.reason)});
      }
    }
    body += fmt::format(
        "<details><summary>{} change{}, with reasons</summary>{}{}</details>\n", changes, changes == 1 ? "" : "s",
        html::table({"step", "layer", "role", "from", "to", "reason"}, rows, {0}, "Changes of the plan", true),
        changes > kMostRows ? html::hint(fmt::format("{} more are in history.jsonl.", changes - kMostRows)) : "");
  }
  if (!run.change_texts.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& [step, text] : run.change_texts) {
      if (rows.size() == kMostRows) break;
      rows.push_back({html::grouped(step), html::escaped(text)});
    }
    const int64_t left_out = run.changes - static_cast<int64_t>(rows.size());
    body += fmt::format(
        "<details{}><summary>{} decision{} of plan and loss scale</summary>{}{}</details>\n",
        all.empty() && rows.size() <= 12 ? " open" : "", html::grouped(run.changes), run.changes == 1 ? "" : "s",
        html::table({"step", "decision"}, rows, {0}, "Decisions by step"),
        left_out > 0 ? html::hint(fmt::format("{} more are in metrics.jsonl.", html::grouped(left_out))) : "");
  }
  if (body.empty()) body = "<p>The plan stayed as it was from the first step to the last.</p>\n";
  return html::section("history", "Plan over time", "measured", "history.jsonl, changes in metrics.jsonl", body);
}

std::string comparison_section(const RunRecord& run, const RunRecord& other) {
  std::string body;
  std::vector<std::vector<std::string>> settings;
  for (const auto& [key, value] : run.settings)
    if (const std::string theirs = other.setting(key); theirs != value)
      settings.push_back({html::escaped(key), html::escaped(value), html::escaped(theirs)});
  for (const auto& [key, value] : other.settings)
    if (run.setting(key).empty() && !value.empty() &&
        std::none_of(run.settings.begin(), run.settings.end(), [&](const auto& s) { return s.first == key; }))
      settings.push_back({html::escaped(key), "", html::escaped(value)});
  if (!settings.empty())
    body += "<h3>Settings</h3>\n" +
            html::table({"setting", "this run", "compared run"}, settings, {}, "Settings that differ", true);
  if (run.plan && other.plan) {
    // Roles of a layer that differ alike share a row.
    std::vector<std::pair<plan::Change, std::string>> merged;
    for (const plan::Change& change : run.plan->diff(*other.plan, run.facts)) {
      if (!merged.empty()) {
        const plan::Change& last = merged.back().first;
        if (last.layer == change.layer && last.from == change.from && last.to == change.to &&
            last.reason == change.reason) {
          merged.back().second += ", " + change.role;
          continue;
        }
      }
      merged.emplace_back(change, change.role);
    }
    std::vector<std::vector<std::string>> rows;
    constexpr size_t kMost = 200;
    for (const auto& [change, roles] : merged) {
      if (rows.size() == kMost) break;
      rows.push_back({html::layer_name(change.layer), html::escaped(roles), html::escaped(change.from),
                      html::escaped(change.to), html::escaped(change.reason)});
    }
    body += "<h3>Plans</h3>\n";
    body += rows.empty() ? "<p>Both ended with the same plan.</p>\n"
                         : html::table({"layer", "roles", "this run", "compared run", "reason there"}, rows, {},
                                       "Formats that differ", true);
    if (merged.size() > kMost)
      body += html::hint(fmt::format("{} more; <code>hpqf plan diff</code> lists all.", merged.size() - kMost));
  }
  if (body.empty()) body = "<p>Settings and plans are the same.</p>\n";
  return html::section("comparison", "Compared with " + html::escaped(other.folder), "", "", body);
}

}  // namespace hpqf::observe
