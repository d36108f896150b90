#include "apps/hpqf/bench_report.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "hpqf/base/file.h"
#include "hpqf/device/device.h"

namespace hpqf::app {
namespace {

double load() {
  double average = 0;
  return getloadavg(&average, 1) == 1 ? average : std::nan("");
}

}  // namespace

nlohmann::ordered_json bench_json(const std::string& benchmark, const BenchOptions& options) {
  const device::CpuFeatures& cpu = device::cpu();
  return {{"schema", "hpqf.bench"},
          {"version", 1},
          {"benchmark", benchmark},
          {"machine", {{"cpu", cpu.brand}, {"isa", cpu.isa()}, {"threads", options.threads}, {"torch", TORCH_VERSION}}},
          {"clock", BenchClock(options.threads).name()},
          {"rounds", options.rounds},
          {"load", load()},
          {"rows", nlohmann::ordered_json::array()}};
}

void add_times(nlohmann::ordered_json& row, const std::vector<double>& base, const std::vector<double>& times) {
  const Spread faster = ratio(base, times);
  row["ms"] = 1e3 * spread(times).median;
  row["ratio"] = faster.median;
  row["ratio_q1"] = faster.q1;
  row["ratio_q3"] = faster.q3;
  for (const double seconds : times) row["rounds_ms"].push_back(1e3 * seconds);
}

std::string bench_header(const BenchOptions& o) {
  const device::CpuFeatures& cpu = device::cpu();
  return fmt::format(
      "{} ({}), torch {}, {} thread{}, load {:.1f}\n"
      "{}, median of {} interleaved round{}; ratio: time of torch fp32 over this one's, with quartiles over the "
      "rounds\n\n",
      cpu.brand, cpu.isa(), TORCH_VERSION, o.threads, o.threads == 1 ? "" : "s", load(), BenchClock(o.threads).name(),
      o.rounds, o.rounds == 1 ? "" : "s");
}

std::string three_digits(double x) {
  if (!std::isfinite(x) || x <= 0) return fmt::format("{}", x);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(x)));
  return fmt::format("{:.{}f}", x, std::clamp(decimals, 0, 6));
}

std::string ratio_text(double ratio) { return fmt::format("{:.2f}", ratio); }

std::string quartiles_text(const Spread& s) { return fmt::format("{:.2f}-{:.2f}", s.q1, s.q3); }

std::string error_text(double e) {
  return e >= 1e-5 ? fmt::format("{:.{}f} %", 100 * e, e >= 1e-3 ? 2 : 4) : fmt::format("{:.1e}", e);
}

void publish(const BenchOptions& options, const std::string& text, const std::vector<std::string>& notes,
             nlohmann::ordered_json json) {
  json["notes"] = notes;
  const std::string content = json.dump(1) + "\n";
  if (options.json == "-") {
    fmt::print("{}", content);
    return;
  }
  fmt::print("{}", text);
  for (const std::string& note : notes) fmt::print("{}{}\n", &note == &notes.front() ? "\n" : "", note);
  if (!options.json.empty()) base::atomic_write(options.json, content);
}

}  // namespace hpqf::app
