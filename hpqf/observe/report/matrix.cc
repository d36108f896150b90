// The plan per layer: a matrix of layers and operands, coloured by what ran.
#include <fmt/format.h>

#include <algorithm>

#include "hpqf/observe/human.h"
#include "hpqf/observe/report/html.h"
#include "hpqf/observe/report/sections.h"
#include "hpqf/plan/json.h"

namespace hpqf::observe {
namespace {

// Texts that many layers share are stored once.
class Texts {
 public:
  size_t number(const std::string& text) {
    const auto it = std::find(texts_.begin(), texts_.end(), text);
    if (it != texts_.end()) return static_cast<size_t>(it - texts_.begin());
    texts_.push_back(text);
    return texts_.size() - 1;
  }
  std::string json() const {
    std::string out = "[";
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (i) out += ",";
      out += plan::json_quote(texts_[i]);
    }
    return out + "]";
  }
  const std::vector<std::string>& all() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

// Room in a page of a thousand layers is scarce: one letter per attribute, and only what differs from the usual.
//   q requested, when it differs from what is shown   r why (number of a text)   e emulated   m mixed   n did not run
std::string cell(const OperandFormats& o, Texts& texts) {
  const bool ran = !o.effective.empty();
  const std::string& shown = ran ? o.effective : o.requested;
  if (shown.empty()) return "<td></td>";
  std::string css = format_class(shown), data;
  if (o.emulated) css += " emulated";
  if (o.differs()) css += " differs";
  if (!ran) css += " planned";
  if (o.differs()) data += fmt::format(" data-q=\"{}\"", html::escaped(o.requested));
  if (!o.reason.empty()) data += fmt::format(" data-r=\"{}\"", texts.number(o.reason));
  if (!o.implementation.empty()) data += fmt::format(" data-i=\"{}\"", texts.number(o.implementation));
  if (o.mixed) data += " data-m";
  if (shown != element_format(shown)) data += fmt::format(" data-b=\"{}\"", html::escaped(shown));
  return fmt::format("<td class=\"{}\"{}>{}{}</td>", css, data, html::escaped(element_format(shown)),
                     o.differs() ? "<span class=\"hidden\">, not as requested</span>" : "");
}

std::string legend(const std::vector<LayerFormats>& layers) {
  std::vector<std::string> seen;
  bool emulated = false, differs = false, planned = false;
  for (const LayerFormats& layer : layers) {
    for (const OperandFormats& o : layer.operands) {
      const std::string format = element_format(o.effective.empty() ? o.requested : o.effective);
      if (!format.empty() && std::find(seen.begin(), seen.end(), format) == seen.end()) seen.push_back(format);
      emulated = emulated || o.emulated;
      differs = differs || o.differs();
      planned = planned || (o.effective.empty() && !o.requested.empty());
    }
  }
  std::string out = "<p class=\"legend\">";
  for (const std::string& format : seen)
    out += fmt::format("<span><i class=\"swatch {}\"></i>{}</span> ", format_class(format), html::escaped(format));
  if (emulated) out += "<span><i class=\"swatch f-none emulated\"></i>hatched: emulated</span> ";
  if (differs) out += "<span><i class=\"swatch f-none differs\"></i>framed: not as requested</span> ";
  if (planned) out += "<span><i class=\"swatch f-none planned\"></i>outline: planned, did not run</span> ";
  return out + "</p>\n";
}

// What is not in the matrix, in words.
std::string others(const RunRecord& run, size_t shown) {
  std::vector<std::pair<std::string, size_t>> kinds;
  for (const plan::LayerFacts& layer : run.facts.layers) {
    const bool ruled = layer.kind == plan::LayerKind::norm || layer.kind == plan::LayerKind::softmax ||
                       layer.kind == plan::LayerKind::loss || layer.kind == plan::LayerKind::activation ||
                       layer.kind == plan::LayerKind::position;
    if (!ruled) continue;
    const auto it =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == name(layer.kind); });
    if (it == kinds.end())
      kinds.emplace_back(name(layer.kind), 1);
    else
      ++it->second;
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format("{}{} of kind {}", text.empty() ? "" : ", ", count, kind);
  std::string out = fmt::format("{} with GEMMs shown.", shown == 1 ? "1 layer" : fmt::format("{} layers", shown));
  if (!text.empty()) out += fmt::format(" In fp32 under every plan: {}.", text);
  return out;
}

}  // namespace

std::string format_class(const std::string& block_format) {
  const std::string element = element_format(block_format);
  return formats::find_format(element) ? "f-" + element : "f-none";
}

std::string matrix_section(const RunRecord& run, const std::vector<LayerFormats>& layers) {
  if (layers.empty())
    return html::section("plan", "Plan per layer", "", "",
                         html::hint("Neither plan.json with a table of layers nor audit.json is there."));
  Texts texts;
  std::string rows;
  for (const LayerFormats& layer : layers) {
    const size_t why = texts.number(layer.reason);
    rows += fmt::format("<tr data-w=\"{}\"><th scope=\"row\">{}</th>", why, html::layer_name(layer.layer));
    for (const OperandFormats& operand : layer.operands) rows += cell(operand, texts);
    rows += fmt::format("<td class=\"type\">{}</td><td class=\"num\">{}</td><td class=\"why\">{}</td></tr>\n",
                        html::escaped(layer.type), human_count(static_cast<double>(layer.parameters)),
                        layer.reason.empty() ? "" : fmt::format("[{}]", why + 1));
  }
  std::string notes;
  for (size_t i = 0; i < texts.all().size(); ++i)
    if (!texts.all()[i].empty()) notes += fmt::format("<li value=\"{}\">{}</li>", i + 1, html::escaped(texts.all()[i]));
  std::string body = legend(layers);
  body += fmt::format(
      "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Plan per layer\"><table class=\"matrix\" "
      "id=\"matrix\"><caption class=\"hidden\">Format of each operand of each layer</caption><thead><tr>"
      "<th scope=\"col\">layer</th><th scope=\"col\">input</th><th scope=\"col\">weight</th><th "
      "scope=\"col\">dgrad</th>"
      "<th scope=\"col\">wgrad</th><th scope=\"col\" class=\"type\">type</th><th scope=\"col\" class=\"num\">parameters"
      "</th><th scope=\"col\" class=\"why\">why</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
      rows);
  body += fmt::format("<p class=\"small\">{} Point at a cell, or tap it, for the reason.</p>\n",
                      html::escaped(others(run, layers.size())));
  body += fmt::format(
      "<details><summary>Reasons and implementations by number</summary><ol class=\"notes\">{}</ol>"
      "</details>\n<script type=\"application/json\" id=\"texts\">{}</script>\n",
      notes, html::script_json(texts.json()));
  const std::string source =
      run.audit ? "plan.json for what was requested, audit.json for what ran" : "plan.json: requested, not what ran";
  return html::section("plan", "Plan per layer", run.audit ? "measured" : "", source, body);
}

}  // namespace hpqf::observe
