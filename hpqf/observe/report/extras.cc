// Sections of what only some runs have: memory and cost, alerts, monitors.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/line_chart.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

// The record's own word for where a number comes from stands beside it ("peak.basis" for "peak.value"): such facts
// become one row.
std::string facts_table(const RunRecord::Facts& facts, const char* caption) {
  const auto find = [&](const std::string& path) -> std::string {
    for (const auto& [key, value] : facts)
      if (key == path) return value;
    return "";
  };
  std::set<std::string> bases{"basis", "source"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [path, value] : facts) {
    const size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot + 1);
    const std::string leaf = dot == std::string::npos ? path : path.substr(dot + 1);
    if (bases.contains(leaf)) continue;
    const std::string basis = find(parent + "basis"), source = find(parent + "source");
    const bool figure = leaf == "value" && !parent.empty();
    rows.push_back({html::escaped(figure ? parent.substr(0, parent.size() - 1) : path), html::escaped(value),
                    basis.empty() ? "" : html::badge(html::escaped(basis)), html::escaped(source)});
  }
  return html::table({"figure", "value", "basis", "source"}, rows, {1}, caption);
}

}  // namespace

std::string cost_section(const RunRecord& run) {
  std::string body;
  if (!run.memory.empty()) body += "<h3>Memory</h3>\n" + facts_table(run.memory, "Memory");
  if (!run.cost.empty()) body += "<h3>Cost and break-even</h3>\n" + facts_table(run.cost, "Cost");
  if (run.memory.empty())
    body +=
        html::hint("Memory: no memory.json in the run folder; <code>hpqf estimate --help</code> says how to model it.");
  if (run.cost.empty())
    body += html::hint(
        "Cost and break-even: no cost.json in the run folder; <code>hpqf cost --help</code> says how to "
        "reckon them from this run.");
  return html::section("cost", "Memory and cost", "",
                       run.memory.empty() && run.cost.empty() ? "" : "memory.json, cost.json", body);
}

std::string alert_section(const RunRecord& run) {
  if (run.alerts.empty())
    return html::section("alerts", "Alerts", "", "",
                         html::hint("The run folder has no alerts: nothing watched the run, or nothing was found."));
  std::vector<std::vector<std::string>> rows;
  constexpr size_t kMost = 200;
  for (const Alert& alert : run.alerts) {
    if (rows.size() == kMost) break;
    const bool grave = alert.severity == "error" || alert.severity == "critical";
    rows.push_back({html::grouped(alert.step),
                    alert.severity.empty() ? ""
                                           : fmt::format("<span class=\"severity{}\">{}</span>", grave ? " grave" : "",
                                                         html::escaped(alert.severity)),
                    html::escaped(alert.kind), alert.layer.empty() ? "" : html::layer_name(alert.layer),
                    html::escaped(alert.text)});
  }
  return html::section("alerts", "Alerts", "measured", "alerts.jsonl",
                       html::table({"step", "severity", "kind", "layer", "what"}, rows, {0}, "Alerts", true) +
                           (run.alerts.size() > kMost
                                ? html::hint(fmt::format("{} more are in alerts.jsonl.", run.alerts.size() - kMost))
                                : ""));
}

std::string monitor_section(const RunRecord& run) {
  if (run.monitored.empty()) return "";
  // Those that move most are the ones worth a chart; all are in the table.
  std::vector<std::pair<double, const std::string*>> order;
  for (const auto& [name, series] : run.monitored) {
    double low = 0, high = 0;
    bool any = false;
    for (const Series::Bucket& b : series.buckets()) {
      if (b.count == 0) continue;
      low = any ? std::min(low, b.min) : b.min;
      high = any ? std::max(high, b.max) : b.max;
      any = true;
    }
    const double size = std::max(std::abs(low), std::abs(high));
    order.emplace_back(size > 0 ? (high - low) / size : 0, &name);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t kCharts = 4, kRows = 200;
  std::string charts;
  for (size_t i = 0; i < std::min(kCharts, order.size()); ++i) {
    if (order[i].first == 0) break;
    const std::string& name = *order[i].second;
    charts += draw({.id = fmt::format("monitor-{}", i), .title = name, .curves = {{name, &run.monitored.at(name)}}});
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, series] : run.monitored) {
    if (rows.size() == kRows) break;
    rows.push_back({html::layer_name(name), html::grouped(series.points()), html::number(series.last())});
  }
  std::string body = charts.empty() ? "" : "<div class=\"charts\">" + charts + "</div>\n";
  body += fmt::format("<details><summary>{} monitored numbers</summary>{}{}</details>\n", run.monitored.size(),
                      html::table({"number", "samples", "last value"}, rows, {1, 2}, "Monitored numbers"),
                      run.monitored.size() > kRows
                          ? html::hint(fmt::format("{} more are in the files.", run.monitored.size() - kRows))
                          : "");
  return html::section("monitor", "Monitors", "measured",
                       "monitor.jsonl, gradients.jsonl; those that move most are drawn", body);
}

}  // namespace hpqf::observe
