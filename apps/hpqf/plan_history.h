// The history of a run's plan: hpqf plan replay, and explain --history.
#pragma once
#include <string>

#include "apps/hpqf/commands.h"

namespace hpqf::app {

void add_plan_replay(CLI::App& plan, Action& action);

// Every decision of the run at `path` (a folder with a history.jsonl, or such a file), for people.
std::string history_text(const std::string& path);

}  // namespace hpqf::app
