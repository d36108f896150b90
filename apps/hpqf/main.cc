// hpqf: trains a reference model under a precision plan, and shows, compares and checks plans and runs.
#include <CLI/CLI.hpp>
#include <csignal>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/failure.h"
#include "apps/hpqf/memory.h"

int main(int argc, char** argv) {
  using namespace hpqf::app;
  // A file that reaches a size limit gives an error from write(2), which says what happened; the signal would only
  // kill.
  std::signal(SIGXFSZ, SIG_IGN);
  keep_freed_memory();

  Action action;
  CLI::App app("Trains models in a precision plan and says what really ran.", "hpqf");
  app.footer(
      "Examples:\n"
      "  hpqf train --model resnet20 --data fashion-mnist --precision bf16 --sensitive 'conv1,fc' --out runs/first\n"
      "  hpqf explain runs/first\n"
      "  hpqf report runs/first\n"
      "  hpqf plan check runs/first/plan.json --model resnet20\n"
      "  hpqf doctor\n"
      "Each command has its own --help with examples.\n"
      "Exit code: 0 done, 1 failure, 2 a mistake in what was asked, 130 or 143 stopped by SIGINT or SIGTERM.");
  app.require_subcommand(1);
  add_train(app, action);
  add_explain(app, action);
  add_report(app, action);
  add_export(app, action);
  add_plan(app, action);
  add_profile(app, action);
  add_bench(app, action);
  add_cost(app, action);
  add_device(app, action);
  add_doctor(app, action);
  add_version(app, action);
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);
    return report_bad_command_line(app, e);
  } catch (...) {
    return report_failure();
  }
}
