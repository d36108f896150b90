#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/hpqf/commands.h"
#include "hpqf/base/error.h"
#include "hpqf/observe/export/exporters.h"
#include "hpqf/observe/export/replay.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::app {
namespace {

struct ExportOptions {
  std::string folder, out;
  std::vector<std::string> to;
};

int run_export(const ExportOptions& o) {
  const std::string out = o.out.empty() ? (std::filesystem::path(o.folder) / "export").string() : o.out;
  observe::read_run_info(o.folder);  // a foreign folder is refused before anything is written
  std::vector<std::string> failed;
  observe::ExporterGroup group([&](const std::string& text) { failed.push_back(text); });
  for (const std::string& name : o.to) group.add(observe::make_exporter(name, out, /*live=*/false));
  const observe::Replayed done = observe::replay(o.folder, group);
  if (!failed.empty())
    throw Error(fmt::format("{}", fmt::join(failed, "; ")), "files that can be written",
                "free disk space, or choose another --out");
  fmt::print("{} steps, {} evaluations{} to {}\n", done.steps, done.evaluations, done.audit ? ", the audit" : "",
             group.where());
  for (const std::string& note : done.notes) fmt::print("  {}\n", note);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("export", "Write a finished run for other tools: TensorBoard, Prometheus, CSV, ...");
  const auto options = std::make_shared<ExportOptions>();
  command->add_option("DIR", options->folder, "Run folder")->required();
  command
      ->add_option("--to", options->to,
                   fmt::format("Exporters, separated by commas: {}; NAME=PATH writes to another place",
                               fmt::join(observe::exporter_names(), ", ")))
      ->delimiter(',')
      ->required();
  command->add_option("--out", options->out, "Folder to write into; default DIR/export");
  command->footer(
      "hpqf train --export takes the same names and writes while the run goes on.\n"
      "Examples:\n"
      "  hpqf export runs/first --to tensorboard,csv\n"
      "  hpqf export runs/first --to perfetto=steps.trace.json\n"
      "  hpqf export runs/first --to prometheus-textfile --out /var/lib/node_exporter");
  command->callback([&action, options] { action = [options] { return run_export(*options); }; });
}

}  // namespace hpqf::app
