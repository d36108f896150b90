#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/plan_files.h"
#include "apps/hpqf/plan_history.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/explain.h"

namespace hpqf::app {
namespace {

int explain(const std::string& path) {
  namespace fs = std::filesystem;
  const PlanFile plan = read_plan(path);
  std::optional<observe::AuditReport> audit;
  const std::string audit_file = (fs::path(path) / "audit.json").string();
  if (fs::is_directory(path) && fs::exists(audit_file)) {
    audit = observe::AuditReport::from_json(base::read_file(audit_file), audit_file);
  }
  fmt::print("{}", observe::explain(plan.plan, plan.facts, audit ? &*audit : nullptr));
  if (!audit) {
    fmt::print(
        "No audit beside the plan: this is what was requested, not what ran. A run writes audit.json at its end.\n");
  }
  return 0;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("explain", "Per layer: what was requested, what ran, and why");
  const auto path = std::make_shared<std::string>();
  const auto history = std::make_shared<bool>(false);
  command->add_option("PATH", *path, "Run folder (plan and audit) or plan file (plan alone)")->required();
  command->add_flag("--history", *history, "Every change of the plan during the run, and what it was made from");
  command->footer(
      "Examples:\n"
      "  hpqf explain runs/first\n"
      "  hpqf explain runs/first/plan.json\n"
      "  hpqf explain runs/first --history");
  command->callback([&action, path, history] {
    action = [path, history] {
      if (!*history) return explain(*path);
      fmt::print("{}", history_text(*path));
      return 0;
    };
  });
}

}  // namespace hpqf::app
