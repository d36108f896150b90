#include "hpqf/observe/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/observe/run/utf8.h"

namespace hpqf::observe::html {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t')
          out += "\xef\xbf\xbd";
        else
          out += c;
    }
  }
  return out;
}

std::string script_json(std::string_view json) {
  std::string out;
  for (const char c : json)
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  return out;
}

std::string layer_name(std::string_view layer) {
  if (layer.empty()) return "(model)";
  std::string out;
  for (const char c : escaped(layer)) {
    out += c;
    if (c == '.') out += "<wbr>";
  }
  return out;
}

std::string badge(std::string_view basis) { return fmt::format("<span class=\"badge {0}\">{0}</span>", basis); }

std::string section(std::string_view id, std::string_view title, std::string_view basis, std::string_view source,
                    std::string_view body) {
  std::string out =
      fmt::format("<section id=\"{0}\" aria-labelledby=\"h-{0}\">\n<h2 id=\"h-{0}\">{1}</h2>\n", id, title);
  if (!basis.empty() || !source.empty())
    out += fmt::format("<p class=\"source\">{}{}{}</p>\n", basis.empty() ? "" : badge(basis),
                       basis.empty() || source.empty() ? "" : " ", source);
  return out + std::string(body) + "</section>\n";
}

std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows,
                  const std::vector<size_t>& right, std::string_view caption, bool stacked) {
  const auto attributes = [&](size_t column, bool head) {
    std::string out;
    if (std::find(right.begin(), right.end(), column) != right.end()) out += " class=\"num\"";
    if (stacked && !head) out += fmt::format(" data-l=\"{}\"", titles[column]);
    return out;
  };
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table{1}><caption class=\"hidden\">{0}"
      "</caption><thead><tr>",
      caption, stacked ? " class=\"stack\"" : "");
  for (size_t i = 0; i < titles.size(); ++i)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", attributes(i, true), titles[i]);
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? fmt::format("<th scope=\"row\"{}><span>{}</span></th>", attributes(i, false), row[i])
                    : fmt::format("<td{}>{}</td>", attributes(i, false),
                                  row[i].empty() ? "" : fmt::format("<span>{}</span>", row[i]));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string hint(std::string_view html) { return fmt::format("<p class=\"hint\">{}</p>\n", html); }

std::string grouped(int64_t value) {
  const std::string digits = fmt::format("{}", value);
  const size_t sign = value < 0 ? 1 : 0;
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string step_count(int64_t steps) { return grouped(steps) + (steps == 1 ? " step" : " steps"); }

std::string number(double value) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (value == std::round(value) && std::fabs(value) < 1e6) return grouped(static_cast<int64_t>(value));
  return fmt::format("{:.4g}", value);
}

}  // namespace hpqf::observe::html
