#include "hpqf/observe/sensitivity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/observe/text_table.h"

namespace hpqf::observe {
namespace {

using plan::LayerSensitivity;
using plan::Operand;
using plan::Sensitivity;

// The formats of any entry, in the order in which they first occur.
std::vector<BlockFormat> formats_in(const Sensitivity& s) {
  std::vector<BlockFormat> all;
  for (const auto& layer : s.layers)
    for (const auto& score : layer.scores)
      if (std::find(all.begin(), all.end(), score.format) == all.end()) all.push_back(score.format);
  return all;
}

struct Row {
  const LayerSensitivity* layer;
  Operand operand;
  double largest = 0;
};
std::vector<Row> rows_in(const Sensitivity& s) {
  std::vector<Row> rows;
  for (const auto& layer : s.layers) {
    for (const Operand operand : plan::kOperands) {
      Row row{&layer, operand, -1};
      for (const auto& score : layer.scores)
        if (score.operand == operand) row.largest = std::max(row.largest, std::isfinite(score.score) ? score.score : 0);
      if (row.largest >= 0) rows.push_back(row);
    }
  }
  return rows;
}

std::string shown(const std::string& layer) { return layer.empty() ? "(model)" : layer; }
std::string number(double score) { return std::isfinite(score) ? fmt::format("{:.2g}", score) : "inf"; }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// White to dark red as `share` goes from 0 to 1.
std::string colour(double share) {
  const double t = std::clamp(share, 0.0, 1.0);
  return fmt::format("rgb({},{},{})", int(255 - 115 * t), int(250 - 230 * t), int(245 - 220 * t));
}

}  // namespace

std::string sensitivity_table(const Sensitivity& s, int max_rows) {
  const auto formats = formats_in(s);
  std::vector<TextTable::Column> columns{{"layer"}, {"role"}};
  for (const BlockFormat& f : formats) columns.push_back({formats::to_string(f), true});
  columns.push_back({"terms", true});
  TextTable table(std::move(columns));
  auto rows = rows_in(s);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.largest > b.largest; });
  const size_t count = max_rows > 0 ? std::min(rows.size(), size_t(max_rows)) : rows.size();
  for (size_t i = 0; i < count; ++i) {
    std::vector<std::string> cells{shown(rows[i].layer->name), plan::name(rows[i].operand)};
    int64_t terms = 0;
    for (const BlockFormat& f : formats) {
      const plan::FormatScore* score = plan::find_score(*rows[i].layer, rows[i].operand, f);
      cells.push_back(score ? number(score->score) : "");
      if (score) terms = score->terms;
    }
    cells.push_back(std::to_string(terms));
    table.add(std::move(cells));
  }
  return table.text();
}

std::string hessian_table(const Sensitivity& s) {
  TextTable table(
      {{"layer"}, {"weights", true}, {"top eigenvalue", true}, {"trace", true}, {"+-", true}, {"probes", true}});
  bool any = false;
  for (const auto& layer : s.layers) {
    if (!layer.hessian) continue;
    any = true;
    table.add({shown(layer.name), std::to_string(layer.weights), number(layer.hessian->top_eigenvalue),
               number(layer.hessian->trace), number(layer.hessian->trace_stderr),
               std::to_string(layer.hessian->probes)});
  }
  return any ? table.text() : "";
}

std::string sensitivity_picture(const Sensitivity& s) {
  const auto formats = formats_in(s);
  const auto rows = rows_in(s);
  double low = INFINITY, high = -INFINITY;
  size_t longest = 5;
  for (const Row& row : rows) {
    longest = std::max(longest, shown(row.layer->name).size() + 8);
    for (const auto& score : row.layer->scores)
      if (score.operand == row.operand && std::isfinite(score.score) && score.score > 0)
        low = std::min(low, std::log10(score.score)), high = std::max(high, std::log10(score.score));
  }
  constexpr int kCell = 74, kLine = 18, kTop = 64;
  const int left = int(longest) * 7 + 16, width = left + kCell * int(formats.size()) + 12;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, kTop + kLine * int(rows.size()) + 12);
  svg += fmt::format(
      "<text x=\"8\" y=\"18\" font-size=\"13\">Sensitivity of {}: measured, nats ({} labels, {} samples)"
      "</text>\n",
      escaped(s.model), s.labels, s.samples);
  for (size_t f = 0; f < formats.size(); ++f)
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", left + kCell * int(f) + kCell / 2,
                       kTop - 8, escaped(formats::to_string(formats[f])));
  for (size_t r = 0; r < rows.size(); ++r) {
    const int y = kTop + kLine * int(r);
    svg += fmt::format("<text x=\"8\" y=\"{}\">{} {}</text>\n", y + 13, escaped(shown(rows[r].layer->name)),
                       plan::name(rows[r].operand));
    for (size_t f = 0; f < formats.size(); ++f) {
      const plan::FormatScore* score = plan::find_score(*rows[r].layer, rows[r].operand, formats[f]);
      if (!score) continue;
      const double share = !std::isfinite(score->score) ? 1
                           : score->score <= 0          ? 0
                           : high > low                 ? (std::log10(score->score) - low) / (high - low)
                                                        : 0;
      const int x = left + kCell * int(f);
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
          x, y, kCell - 2, kLine - 2, colour(share), x + kCell / 2, y + 12, share > 0.6 ? "white" : "black",
          number(score->score));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace hpqf::observe
