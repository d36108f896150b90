// The commands of `hpqf`. Each adds itself to the command line and, when it is the one that was asked for, sets the
// action.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace hpqf::app {

using Action = std::function<int()>;  // returns the exit code

void add_train(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_profile(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_cost(CLI::App& app, Action& action);
void add_device(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_version(CLI::App& app, Action& action);

}  // namespace hpqf::app
