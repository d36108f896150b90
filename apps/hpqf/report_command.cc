#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/hpqf/commands.h"
#include "apps/hpqf/open_page.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/report/report.h"

namespace hpqf::app {
namespace {

struct ReportOptions {
  std::string folder, out, compare, open = "auto";
};

int report(const ReportOptions& o) {
  if (o.open != "yes" && o.open != "no" && o.open != "auto")
    throw Error(fmt::format("--open {}", o.open), "yes, no, or auto: only when a person sits at this terminal",
                "correct --open");
  const observe::RunRecord run = observe::read_run(o.folder);
  std::optional<observe::RunRecord> other;
  if (!o.compare.empty()) other = observe::read_run(o.compare);
  const std::string path = o.out.empty() ? (std::filesystem::path(o.folder) / "report.html").string() : o.out;
  const std::string page = observe::html_report(run, other ? &*other : nullptr);
  base::atomic_write(path, page);
  fmt::print("{} ({}, {} steps)\n", path, observe::human_bytes(static_cast<double>(page.size())), run.steps);
  for (const std::string& note : run.notes) fmt::print("  {}\n", note);
  if (o.open == "yes" || (o.open == "auto" && ::isatty(1) && has_display())) open_page(path);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("report", "One HTML page about a run: curves, plan, what really ran and why");
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("DIR", options->folder, "Run folder")->required();
  command->add_option("--out", options->out, "File to write; default DIR/report.html");
  command->add_option("--compare", options->compare, "Another run folder, drawn beside it");
  command->add_option("--open", options->open, "Open the page in a browser: yes, no or auto; default auto");
  command->footer(
      "The page needs nothing else: it can be mailed, printed and read on a phone. Runs that were killed, or are still "
      "going, give a page too.\n"
      "Examples:\n"
      "  hpqf report runs/first\n"
      "  hpqf report runs/int8 --compare runs/fp32 --out int8-against-fp32.html --open no");
  command->callback([&action, options] { action = [options] { return report(*options); }; });
}

}  // namespace hpqf::app
