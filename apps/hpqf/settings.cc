#include "apps/hpqf/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/base/text.h"

namespace hpqf::app {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, const char*> kExclusive[] = {{"plan", "precision"}, {"steps", "epochs"}};
// Options of one call, which a file of settings cannot give.
constexpr const char* kCommandLineOnly[] = {"help", "config", "resume"};

std::string scalar(const json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw Error(fmt::format("{}: {}", where, value.dump()), "a string, a number, true, false, or a list of these",
              "correct the file");
}

Settings from_json(const std::string& text, const std::string& path) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::exception& e) {
    throw Error(fmt::format("settings in {}", path), fmt::format("JSON; {}", e.what()), "correct the file");
  }
  if (!root.is_object()) {
    throw Error(fmt::format("settings in {}", path), "a JSON object of option names and values", "correct the file");
  }
  Settings settings;
  for (const auto& [key, value] : root.items()) {
    if (key == "schema" || key == "version") continue;  // of a config.json
    const std::string where = fmt::format("{}: \"{}\"", path, key);
    Setting setting{key, {}};
    if (value.is_array()) {
      for (const json& element : value) setting.values.push_back(scalar(element, where));
    } else {
      setting.values.push_back(scalar(value, where));
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

Settings from_toml_or_ini(const std::string& text, const std::string& path) {
  std::istringstream stream(text);
  Settings settings;
  try {
    // The two differ in what begins a comment at the end of a line: ; in INI, # in TOML.
    const auto items =
        path.ends_with(".ini") ? CLI::ConfigINI().from_config(stream) : CLI::ConfigTOML().from_config(stream);
    for (const CLI::ConfigItem& item : items) {
      if (item.name == "++" || item.name == "--") continue;  // CLI11's marks where a section begins and ends
      const bool ours = item.parents.empty() || (item.parents.size() == 1 && item.parents[0] == "train");
      settings.push_back({ours ? item.name : item.fullname(), item.inputs});
    }
  } catch (const CLI::Error& e) {
    throw Error(fmt::format("settings in {}", path), e.what(), "correct the file");
  }
  return settings;
}

CLI::Option* find(CLI::App& command, const std::string& key) { return command.get_option_no_throw("--" + key); }

bool kept_out(CLI::App& command, const std::string& key, const std::vector<std::string>& given) {
  return std::any_of(std::begin(kExclusive), std::end(kExclusive), [&](const auto& pair) {
    const auto is_given = [&](const char* name) { return std::find(given.begin(), given.end(), name) != given.end(); };
    return (key == pair.first && is_given(pair.second)) || (key == pair.second && is_given(pair.first));
  });
}

std::vector<std::string> names(const CLI::App& command) {
  std::vector<std::string> all;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
    if (!name.empty() &&
        std::find(std::begin(kCommandLineOnly), std::end(kCommandLineOnly), name) == std::end(kCommandLineOnly)) {
      all.push_back(name);
    }
  }
  return all;
}

}  // namespace

Settings read_settings(const std::string& path) {
  const std::string text = base::read_file(path);
  return path.ends_with(".json") ? from_json(text, path) : from_toml_or_ini(text, path);
}

void apply(const Settings& settings, CLI::App& command, const std::string& where) {
  const std::vector<std::string> known = names(command);
  std::vector<std::string> given;
  for (const std::string& name : known) {
    if (find(command, name)->count() > 0) given.push_back(name);
  }
  for (const Setting& setting : settings) {
    if (std::find(known.begin(), known.end(), setting.key) == known.end()) {
      throw Error(fmt::format("setting '{}' in {}", setting.key, where),
                  fmt::format("names of options, for example {}", fmt::join(base::nearest(known, setting.key), ", ")),
                  "correct the name; hpqf train --help lists all options");
    }
    CLI::Option* option = find(command, setting.key);
    if (option->count() > 0 || setting.values.empty() || kept_out(command, setting.key, given)) continue;
    try {
      option->add_result(setting.values);
      option->run_callback();
    } catch (const CLI::Error& e) {
      throw Error(fmt::format("setting '{}' in {}: {}", setting.key, where, fmt::join(setting.values, ",")), e.what(),
                  "correct the value; hpqf train --help says what it means");
    }
  }
}

}  // namespace hpqf::app
