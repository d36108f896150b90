// What ran, how it ended, and how much of it was in which arithmetic.
#include <fmt/format.h>

#include <cmath>

#include "hpqf/observe/export/names.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

struct Tile {
  std::string name, value, basis, note;
};

std::optional<Tile> quality(const RunRecord& run) {
  if (run.result && run.result->accuracy)
    return Tile{"Test accuracy", fmt::format("{:.2f} %", 100 * *run.result->accuracy), "measured",
                fmt::format("{} images, loss {}", html::grouped(run.result->samples), html::number(run.result->loss))};
  if (run.result && run.result->perplexity)
    return Tile{"Perplexity", html::number(*run.result->perplexity), "measured",
                fmt::format("{} validation samples, loss {}", html::grouped(run.result->samples),
                            html::number(run.result->loss))};
  if (run.steps > 0)
    return Tile{"Last training loss", html::number(run.loss.last()), "measured",
                fmt::format("step {}; the run left no result.json", html::grouped(run.last_step))};
  return std::nullopt;
}

std::optional<Tile> wall_time(const RunRecord& run) {
  if (run.result && run.result->seconds > 0)
    return Tile{"Wall time", human_seconds(run.result->seconds), "measured", "of the last call of train"};
  if (run.timed_steps > 0)
    return Tile{"Time in steps", human_seconds(run.step_seconds), "measured",
                fmt::format("{}, data loading not included", html::step_count(run.timed_steps))};
  if (run.audit && run.audit->total_seconds > 0)
    return Tile{"Time in steps", human_seconds(run.audit->total_seconds), "measured",
                fmt::format("{} of the audit", html::step_count(run.audit->steps))};
  return std::nullopt;
}

std::vector<Tile> tiles(const RunRecord& run) {
  std::vector<Tile> out;
  if (auto tile = quality(run)) out.push_back(*tile);
  if (auto tile = wall_time(run)) out.push_back(*tile);
  if (run.steps > 0)
    out.push_back({"Steps", html::grouped(run.last_step), "measured",
                   run.skipped == 0
                       ? fmt::format("{} epoch{}, none skipped", html::grouped(run.epochs), run.epochs == 1 ? "" : "s")
                       : fmt::format("{} skipped ({} %)", html::grouped(run.skipped),
                                     percent(static_cast<double>(run.skipped) / run.steps))});
  if (run.audit && run.audit->counted_flops() > 0) {
    double low = 0, native = 0;  // of the FLOPs
    for (const AuditReport::Share& share : run.audit->shares()) {
      if (share.format != "fp32") low += share.flops;
      if (share.format != "fp32" && !share.emulated) native += share.flops;
    }
    out.push_back({"Low precision, native", percent(native) + " %", "measured",
                   "of GEMM FLOPs: low formats computed in low-precision arithmetic"});
    out.push_back({"Low precision, emulated", percent(low - native) + " %", "measured",
                   "of GEMM FLOPs: rounded to the format, computed in fp32"});
    out.push_back({"As requested", percent(as_requested_flops_share(*run.audit)) + " %", "measured",
                   "of GEMM FLOPs ran in the formats of the plan"});
  }
  return out;
}

std::string tile_html(const Tile& tile, const std::string& other) {
  return fmt::format("<div class=\"tile\"><dt>{}</dt><dd><b>{}</b>{}<small>{} {}</small></dd></div>\n",
                     html::escaped(tile.name), html::escaped(tile.value),
                     other.empty() ? "" : fmt::format("<span class=\"other\">{}</span>", html::escaped(other)),
                     html::badge(tile.basis), html::escaped(tile.note));
}

}  // namespace

std::string page_title(const RunRecord& run) {
  const std::string model = !run.setting("model").empty() ? run.setting("model")
                            : !run.facts.model.empty()    ? run.facts.model
                                                          : "A run";
  const std::string data = run.setting("data");
  return data.empty() ? model : model + " on " + data;
}

std::string summary_section(const RunRecord& run, const RunRecord* other) {
  const std::vector<Tile> mine = tiles(run), theirs = other ? tiles(*other) : std::vector<Tile>();
  std::string body = "<dl class=\"tiles\">\n";
  for (const Tile& tile : mine) {
    std::string beside;
    for (const Tile& t : theirs)
      if (t.name == tile.name) beside = t.value;
    body += tile_html(tile, beside.empty() ? "" : "compared: " + beside);
  }
  body += "</dl>\n";
  std::vector<std::string> facts;
  if (!run.setting("precision").empty()) facts.push_back("precision " + run.setting("precision"));
  if (!run.setting("plan").empty()) facts.push_back("plan " + run.setting("plan"));
  if (!run.setting("sensitive").empty()) facts.push_back("kept in fp32: " + run.setting("sensitive"));
  if (!run.setting("optimizer").empty()) facts.push_back("optimizer " + run.setting("optimizer"));
  if (!run.setting("batch-size").empty()) facts.push_back("batch size " + run.setting("batch-size"));
  if (run.audit && run.audit->counted_flops() > 0)
    facts.push_back(human_flops(run.audit->counted_flops()) + " in GEMMs");
  if (!facts.empty()) {
    body += "<ul class=\"facts\">";
    for (const std::string& fact : facts) body += "<li>" + html::escaped(fact) + "</li>";
    body += "</ul>\n";
  }
  for (const std::string& note : run.notes) body += fmt::format("<p class=\"note\">{}</p>\n", html::escaped(note));
  if (other)
    for (const std::string& note : other->notes)
      body += fmt::format("<p class=\"note\">compared run: {}</p>\n", html::escaped(note));
  return html::section("summary", "Summary", "", "", body);
}

std::string settings_section(const RunRecord& run) {
  if (run.settings.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : run.settings) rows.push_back({html::escaped(key), html::escaped(value)});
  return html::section("settings", "Settings", "", "as given, from config.json",
                       html::table({"setting", "value"}, rows, {}, "Settings of the run"));
}

}  // namespace hpqf::observe
