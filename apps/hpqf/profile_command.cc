#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/sensitivity_profile.h"

namespace hpqf::app {

void add_profile(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("profile", "Per layer: how much the loss suffers from each format");
  const auto config = std::make_shared<SensitivityConfig>();
  add_sensitivity_options(*command, *config);
  command->footer(kSensitivityHelp);
  command->callback([&action, config] { action = [config] { return profile_sensitivity(*config); }; });
}

}  // namespace hpqf::app
