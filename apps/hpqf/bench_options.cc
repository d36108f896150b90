#include "apps/hpqf/bench_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "hpqf/base/error.h"

namespace hpqf::app {

void add_bench_options(CLI::App& command, BenchOptions& o) {
  command
      .add_option("--threads", o.threads,
                  "Threads to compute with; default 1. One thread is timed by CPU time, which other processes do not "
                  "disturb, several by the clock on the wall")
      ->group("Measurement");
  command.add_option("--rounds", o.rounds, "Each round times every variant once, in turn; default 15")
      ->group("Measurement");
  command.add_option("--json", o.json, "All figures, also those of single rounds, into this file; - for stdout")
      ->group("Output");
  command.add_flag("--quiet", o.quiet, "No progress")->group("Output");
}

void refuse(const std::string& option, const std::string& value, const std::string& allowed) {
  throw Error(fmt::format("--{} {}", option, value), allowed, fmt::format("correct --{}", option));
}

int most_threads() { return 64 * static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

void check(const BenchOptions& o) {
  namespace fs = std::filesystem;
  if (o.threads < 1 || o.threads > most_threads())
    refuse("threads", std::to_string(o.threads), "1 or more, at most 64 times the cores");
  if (o.rounds < 1 || o.rounds > 100'000) refuse("rounds", std::to_string(o.rounds), "1 to 100000");
  if (o.json.empty() || o.json == "-") return;
  // Now, not after minutes of measuring.
  const fs::path folder = fs::absolute(o.json).parent_path();
  if (fs::is_directory(o.json)) refuse("json", o.json, "a file; this is a folder");
  if (!fs::is_directory(folder))
    refuse("json", o.json, fmt::format("a file in a folder that exists; {} does not", folder.string()));
}

std::vector<std::string> distinct(const std::string& option, const std::vector<std::string>& values) {
  std::vector<std::string> kept;
  for (const std::string& value : values) {
    if (value.empty()) refuse(option, "''", "names separated by commas");
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
  }
  if (kept.empty()) refuse(option, "''", "at least one");
  return kept;
}

}  // namespace hpqf::app
