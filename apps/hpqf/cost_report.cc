#include "apps/hpqf/cost_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hpqf/base/file.h"

namespace hpqf::app {
namespace {

constexpr size_t kWidth = 110;

std::string wrapped(const std::string& first, const std::string& text) {
  const std::string indent(first.size(), ' ');
  std::string out, line = first;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (line.size() + word.size() > kWidth && line.size() > indent.size()) {
      while (line.back() == ' ') line.pop_back();
      out += line + "\n";
      line = indent;
    }
    line += word + " ";
    begin = end + 1;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return out + line + "\n";
}

}  // namespace

std::string assumption_text(const std::string& title, const std::vector<cost::Assumption>& list) {
  if (list.empty()) return "";
  std::string text = "\n" + title + "\n";
  for (const cost::Assumption& a : list) text += wrapped(fmt::format("  {:<9} ", cost::name(a.basis)), a.text);
  return text;
}

std::string note_text(const std::string& title, const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string text = "\n" + title + "\n";
  for (const std::string& note : notes) text += wrapped("  - ", note);
  return text;
}

nlohmann::ordered_json cost_json(const std::string& kind) {
  return {{"schema", "hpqf.cost"}, {"version", 1}, {"kind", kind}};
}

nlohmann::ordered_json to_json(const std::vector<cost::Assumption>& list) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const cost::Assumption& a : list) json.push_back({{"basis", cost::name(a.basis)}, {"text", a.text}});
  return json;
}

nlohmann::ordered_json to_json(const cost::Band& band) {
  return {{"low", band.low}, {"mid", band.mid}, {"high", band.high}};
}

void publish(const CostConfig& config, const std::string& text, const nlohmann::ordered_json& json) {
  const std::string content = json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (config.json == "-") {
    fmt::print("{}", content);
    return;
  }
  fmt::print("{}", text);
  if (!config.json.empty()) base::atomic_write(config.json, content);
}

}  // namespace hpqf::app
