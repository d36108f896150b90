#include "hpqf/observe/run/optional_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "hpqf/base/file.h"
#include "hpqf/observe/run/lines.h"

namespace hpqf::observe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return "";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

int64_t whole_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

void for_each_object(const std::string& folder, const char* name, RunRecord& run,
                     const std::function<void(const Json&)>& use) {
  const std::string path = (fs::path(folder) / name).string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  int64_t foreign = 0;
  const LinesRead read = for_each_line(path, [&](std::string_view line) {
    const Json value = Json::parse(line, nullptr, false);
    if (value.is_object())
      use(value);
    else
      ++foreign;
  });
  if (read.torn) run.notes.push_back(fmt::format("{}: the last line is torn and was left out", name));
  if (foreign + read.too_long > 0)
    run.notes.push_back(fmt::format("{}: {} lines that are no JSON object left out", name, foreign + read.too_long));
}

void add_history(const Json& line, RunRecord& run) {
  PlanChange change{whole_of(line, "step"), whole_of(line, "epoch"), {}};
  const auto list = line.find("changes");
  if (list == line.end() || !list->is_array()) return;
  for (const Json& entry : *list)
    if (entry.is_object())
      change.changes.push_back({text_of(entry, "layer"), text_of(entry, "role"), text_of(entry, "from"),
                                text_of(entry, "to"), text_of(entry, "reason")});
  if (run.history.size() < RunRecord::kLongestList) run.history.push_back(std::move(change));
}

void add_alert(const Json& line, RunRecord& run) {
  if (run.alerts.size() >= RunRecord::kLongestList) return;
  std::string text = text_of(line, "message");
  for (const char* key : {"text", "reason"})
    if (text.empty()) text = text_of(line, key);
  std::string severity = text_of(line, "severity");
  if (severity.empty()) severity = text_of(line, "level");
  std::string kind = text_of(line, "kind");
  for (const char* key : {"rule", "alert", "name"})
    if (kind.empty()) kind = text_of(line, key);
  run.alerts.push_back({whole_of(line, "step"), severity, kind, text_of(line, "layer"), text});
}

// Every number of the line is a curve over its "step", under the layer the line or its part speaks of.
void add_numbers(const Json& object, int64_t step, const std::string& prefix, int depth, RunRecord& run) {
  if (depth > 4) return;
  for (const auto& [key, value] : object.items()) {
    if (key == "step" || key == "epoch" || key == "time") continue;
    if (value.is_number()) {
      const std::string name = prefix + key;
      auto it = run.monitored.find(name);
      if (it == run.monitored.end()) {
        if (run.monitored.size() >= RunRecord::kMostSeries) continue;
        it = run.monitored.emplace(name, Series(64)).first;
      }
      it->second.add(step, value.get<double>());
    } else if (value.is_object()) {
      add_numbers(value, step, prefix + key + ": ", depth + 1, run);
    } else if (value.is_array()) {
      for (const Json& element : value) {
        if (!element.is_object()) continue;
        const std::string layer = text_of(element, "layer"), role = text_of(element, "role");
        if (!layer.empty()) add_numbers(element, step, layer + (role.empty() ? "" : " " + role) + ": ", depth + 1, run);
      }
    }
  }
}

void add_monitor_line(const Json& line, RunRecord& run) {
  const std::string layer = text_of(line, "layer"), role = text_of(line, "role");
  const std::string prefix = layer.empty() ? "" : layer + (role.empty() ? "" : " " + role) + ": ";
  add_numbers(line, whole_of(line, "step"), prefix, 0, run);
}

void flatten(const Json& value, const std::string& path, RunRecord::Facts& out) {
  constexpr size_t kMost = 200;
  if (out.size() >= kMost) return;
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      if (!path.empty() || (key != "schema" && key != "version"))
        flatten(inner, path.empty() ? key : path + "." + key, out);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) flatten(value[i], fmt::format("{}.{}", path, i), out);
  } else if (!value.is_null()) {
    out.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void read_facts(const std::string& folder, const char* name, RunRecord::Facts& out, RunRecord& run) {
  const std::string path = (fs::path(folder) / name).string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const Json root = Json::parse(base::read_file(path), nullptr, false);
  if (root.is_object())
    flatten(root, "", out);
  else
    run.notes.push_back(fmt::format("{} was left out: it is no JSON object", name));
}

}  // namespace

void read_optional_files(const std::string& folder, RunRecord& run) {
  for_each_object(folder, "history.jsonl", run, [&](const Json& line) { add_history(line, run); });
  for_each_object(folder, "alerts.jsonl", run, [&](const Json& line) { add_alert(line, run); });
  for (const char* name : {"monitor.jsonl", "gradients.jsonl"})
    for_each_object(folder, name, run, [&](const Json& line) { add_monitor_line(line, run); });
  read_facts(folder, "memory.json", run.memory, run);
  read_facts(folder, "cost.json", run.cost, run);
}

}  // namespace hpqf::observe
