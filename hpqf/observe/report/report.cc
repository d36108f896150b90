#include "hpqf/observe/report/report.h"

#include <fmt/format.h>

#include <filesystem>

#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/page.h"
#include "hpqf/observe/report/sections.h"

namespace hpqf::observe {
namespace {

std::string navigation(const std::string& body) {
  // From the sections themselves, so that the two cannot differ.
  std::string out = "<nav aria-label=\"Sections\"><ul>";
  const std::string mark = "<section id=\"";
  for (size_t at = body.find(mark); at != std::string::npos; at = body.find(mark, at + 1)) {
    const size_t id = at + mark.size(), id_end = body.find('"', id);
    const std::string name = body.substr(id, id_end - id);
    out +=
        fmt::format("<li><a href=\"#{}\">{}{}</a></li>", name, static_cast<char>(name[0] - 'a' + 'A'), name.substr(1));
  }
  return out + "</ul></nav>\n";
}

}  // namespace

std::string html_report(const RunRecord& run, const RunRecord* other) {
  const std::vector<LayerFormats> layers =
      layer_formats(run.plan ? &*run.plan : nullptr, run.facts, run.audit ? &*run.audit : nullptr);
  std::string body = summary_section(run, other);
  if (other) body += comparison_section(run, *other);
  body += curves_section(run, other);
  body += share_section(run, other);
  body += matrix_section(run, layers);
  body += difference_section(run, layers);
  body += history_section(run);
  body += layer_time_section(run);
  body += monitor_section(run);
  body += cost_section(run);
  body += alert_section(run);
  body += settings_section(run);
  const std::string title = html::escaped(page_title(run));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0} · HPQF report</title>\n<style>{1}</style>\n</head>\n<body>\n"
      "<header><p class=\"kicker\">HPQF run report</p><h1>{0}</h1><p class=\"folder\">{2}</p></header>\n{3}"
      "<main>\n{4}</main>\n"
      "<footer><p>Badges say where numbers come from: {5} in this run, {6} from a model of the machine, {7} from a "
      "published source.</p></footer>\n"
      "<div id=\"tip\" role=\"status\" hidden></div>\n<script>{8}</script>\n</body>\n</html>\n",
      title, page_style(), html::escaped(run.folder), navigation(body), body, html::badge("measured"),
      html::badge("modelled"), html::badge("quoted"), page_script());
}

}  // namespace hpqf::observe
