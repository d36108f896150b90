// Where settings come from beside the command line, and who wins.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hpqf::app {

struct Setting {
  std::string key;  // a long option without its dashes
  std::vector<std::string> values;
};
using Settings = std::vector<Setting>;

// JSON (an object of option names), TOML or INI, by the ending of the name: .json, .ini, anything else TOML. Error
// naming the file and the place.
Settings read_settings(const std::string& path);

// Gives `settings` to the options of `command` that have no value yet: what was applied earlier wins. Of options that
// exclude each other (plan and precision; steps and epochs) an earlier one keeps the other out. Error naming `where`:
// an unknown key (with the nearest ones), a value that does not fit.
void apply(const Settings& settings, CLI::App& command, const std::string& where);

}  // namespace hpqf::app
