#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/doctor.h"

namespace hpqf::app {

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine is, what pays on it and what is set wrong");
  const auto config = std::make_shared<DoctorConfig>();
  command->add_flag("--json", config->json, "Everything as JSON on stdout instead of the report")->group("Output");
  command->add_flag("--quiet", config->quiet, "No progress")->group("Output");
  command->add_flag("--quick", config->quick, "Fewer shapes and runs: some 10 s instead of at most 60")
      ->group("Calibration");
  CLI::Option* without =
      command
          ->add_flag("--no-calibrate{false}", config->calibrate, "Measure nothing; figures kept from before are shown")
          ->group("Calibration");
  command->add_flag("--again", config->again, "Measure anew even where figures are kept")
      ->group("Calibration")
      ->excludes(without);
  command->add_option("--threads", config->threads, "Threads to compute with; default: as many as torch chooses")
      ->group("Calibration");
  command
      ->add_option("--record", config->record,
                   "Write a description of this machine into DIR/machine.json, for a report")
      ->type_name("DIR")
      ->group("Recorded machines");
  command
      ->add_option("--machine", config->machine,
                   "Look at the machine described in DIR/machine.json instead of this one")
      ->type_name("DIR")
      ->group("Recorded machines");
  command->footer(
      "Figures are kept for 30 days in ~/.cache/hpqf (XDG_CACHE_HOME) for this CPU, torch and number of threads.\n"
      "A recording holds the files of /proc and /sys that are looked at and what the GPU libraries say: no host or "
      "user\n"
      "names, no serial numbers.\n"
      "Examples:\n"
      "  hpqf doctor\n"
      "  hpqf doctor --quick --threads 1\n"
      "  hpqf doctor --no-calibrate --json\n"
      "  hpqf doctor --record my-machine\n"
      "  hpqf doctor --machine my-machine");
  command->callback([&action, config] { action = [config] { return doctor(*config); }; });
}

}  // namespace hpqf::app
