#include "apps/hpqf/plan_history.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/plan/policy/history.h"

namespace hpqf::app {
namespace {

plan::Replay replay_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::string file = path;
  if (fs::is_directory(path)) {
    file = (fs::path(path) / "history.jsonl").string();
    if (!fs::exists(file))
      throw Error(fmt::format("the history of {}", path), "a run folder with a history.jsonl",
                  "runs write one when policies may change their plan");
  }
  return plan::replay(base::read_file(file), file);
}

int replay(const std::string& path) {
  const plan::Replay r = replay_of(path);
  fmt::print("{}", plan::explain(r));
  fmt::print("{} decisions: {} decided again from the log and the same, {} of users' policies applied, {} wrong\n",
             r.entries.size(), r.recomputed, r.only_applied, r.wrong);
  return r.wrong > 0 ? 1 : 0;
}

}  // namespace

std::string history_text(const std::string& path) { return plan::explain(replay_of(path)); }

void add_plan_replay(CLI::App& plan, Action& action) {
  CLI::App* command = plan.add_subcommand("replay", "Decides again every change of a run's plan, from its log alone");
  const auto path = std::make_shared<std::string>();
  command->add_option("RUN", *path, "Run folder, or its history.jsonl")->required();
  command->footer(
      "Exit code 1 when a decision in the log is not the one that its inputs lead to.\n"
      "Example:\n  hpqf plan replay runs/first");
  command->callback([&action, path] { action = [path] { return replay(*path); }; });
}

}  // namespace hpqf::app
