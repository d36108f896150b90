// Where the time went: layers by the time their ops took.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpqf/observe/human.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

struct LayerTime {
  std::string layer;
  std::array<double, 4> seconds{};  // by Pass
  double flops = 0;
  double sum() const { return seconds[0] + seconds[1] + seconds[2] + seconds[3]; }
};

std::vector<LayerTime> by_layer(const AuditReport& audit) {
  std::vector<LayerTime> out;
  for (const AuditRow& row : audit.rows) {
    // Rows of a layer stand together.
    if (out.empty() || out.back().layer != row.layer) {
      const auto it = std::find_if(out.begin(), out.end(), [&](const LayerTime& t) { return t.layer == row.layer; });
      if (it != out.end())
        std::rotate(it, it + 1, out.end());
      else
        out.push_back({row.layer});
    }
    out.back().seconds[static_cast<size_t>(row.pass)] += row.seconds;
    out.back().flops += row.flops;
  }
  std::stable_sort(out.begin(), out.end(), [](const LayerTime& a, const LayerTime& b) { return a.sum() > b.sum(); });
  return out;
}

constexpr std::array kPasses = {"forward", "dgrad", "wgrad", "backward"};

}  // namespace

std::string layer_time_section(const RunRecord& run) {
  if (!run.audit || run.audit->rows.empty())
    return html::section("time", "Layers by time", "", "",
                         html::hint("Times of layers are in audit.json, which a run writes at its end."));
  const AuditReport& audit = *run.audit;
  std::vector<LayerTime> layers = by_layer(audit);
  constexpr size_t kMost = 20;
  const double base = audit.base_seconds(), longest = layers.front().sum();
  double rest = 0;
  size_t left_out = 0;
  for (size_t i = kMost; i < layers.size(); ++i, ++left_out) rest += layers[i].sum();
  layers.resize(std::min(kMost, layers.size()));
  std::vector<std::vector<std::string>> rows;
  for (const LayerTime& layer : layers) {
    std::string bar;
    for (size_t pass = 0; pass < kPasses.size(); ++pass)
      if (layer.seconds[pass] > 0 && longest > 0)
        bar += fmt::format("<span class=\"p-{}\" style=\"width:{:.2f}%\"></span>", kPasses[pass],
                           100 * layer.seconds[pass] / longest);
    rows.push_back({html::layer_name(layer.layer),
                    fmt::format("<div class=\"minibar\" aria-hidden=\"true\">{}</div>", bar),
                    human_seconds(layer.sum()), base > 0 ? percent(layer.sum() / base) + " %" : "-",
                    layer.flops > 0 ? human_flops(layer.flops) : "-",
                    layer.flops > 0 && layer.sum() > 0 ? human_flops(layer.flops / layer.sum()) + "/s" : "-"});
  }
  if (left_out)
    rows.push_back({fmt::format("({} more layers)", left_out), "", human_seconds(rest),
                    base > 0 ? percent(rest / base) + " %" : "-", "", ""});
  std::string body = "<p class=\"legend\">";
  for (const char* pass : kPasses) body += fmt::format("<span><i class=\"p-{0}\"></i>{0}</span> ", pass);
  body += "</p>\n" +
          html::table({"layer", "passes", "time", "share", "work", "rate"}, rows, {2, 3, 4, 5}, "Layers by time");
  body += fmt::format(
      "<p class=\"small\">Share is of {}. Ops without a layer of their own, such as losses, stand under "
      "(model).</p>\n",
      audit.total_seconds > 0 ? "the wall time of the steps" : "the counted time");
  return html::section(
      "time", "Layers by time", "measured",
      fmt::format("audit.json, {}, {} counted", html::step_count(audit.steps), human_seconds(audit.counted_seconds())),
      body);
}

}  // namespace hpqf::observe
