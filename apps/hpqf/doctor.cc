#include "apps/hpqf/doctor.h"

#include <ATen/Parallel.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "apps/hpqf/bench_options.h"
#include "apps/hpqf/calibrate.h"
#include "apps/hpqf/doctor_report.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"

namespace hpqf::app {
namespace {

namespace fs = std::filesystem;
using namespace device::machine;

constexpr const char* kFile = "machine.json";

void check(const DoctorConfig& c) {
  if (c.threads < 0 || c.threads > most_threads())
    refuse("threads", std::to_string(c.threads), "1 or more, at most 64 times the cores; 0 for torch's choice");
  if (!c.machine.empty() && !c.record.empty())
    throw Error("--machine together with --record", "one of the two", "leave out one of them");
  if (!c.machine.empty() && (c.quick || c.again))
    throw Error(c.quick ? "--quick for a recorded machine" : "--again for a recorded machine",
                "nothing: a recorded machine cannot be measured", "leave it out");
  if (!c.machine.empty() && !fs::exists(fs::path(c.machine) / kFile))
    refuse("machine", c.machine, "a folder with machine.json, as --record writes it");
}

// One thread a physical core of those that may be used: what torch takes.
int default_threads(const MachineFacts& facts) { return std::max(1, std::min(facts.cpu.cores, facts.usable_cpus())); }

int record_machine(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) refuse("record", folder, "a folder that can be written: " + failed.message());
  const fs::path file = fs::path(folder) / kFile;
  base::atomic_write(file.string(), to_json(record(RootTree(), read_gpus())));
  fmt::print("wrote {}: look at it with hpqf doctor --machine {}\n", file.string(), folder);
  return 0;
}

Diagnosis recorded(const DoctorConfig& c) {
  const std::string file = (fs::path(c.machine) / kFile).string();
  Recording recording = parse_recording(base::read_file(file), file);
  Diagnosis d;
  d.facts = detect(RecordedTree(std::move(recording.files)), std::move(recording.gpus));
  d.recorded = file;
  d.threads = c.threads > 0 ? c.threads : default_threads(d.facts);
  d.calibration_note = "not measured: the machine is recorded";
  return d;
}

std::string kept_text(const std::string& path) {
  std::error_code ignored;
  try {
    return path.empty() || !fs::exists(path, ignored) ? "" : base::read_file(path);
  } catch (const Error&) {  // unreadable is as good as not there; writing will fail too and is said then
    return "";
  }
}

// Returns what to say when the file cannot be written.
std::string keep(const std::string& path, const Calibration& calibration) {
  if (path.empty()) return "; not kept: neither HOME nor XDG_CACHE_HOME is set";
  try {
    fs::create_directories(fs::path(path).parent_path());
    base::atomic_write(path, add_calibration(kept_text(path), calibration));
  } catch (const std::exception&) {
    return fmt::format("; not kept: {} cannot be written", path);
  }
  return "";
}

void measure(const DoctorConfig& c, Diagnosis& d) {
  const std::string path = base::cache_file("calibration.json");
  CalibrationLookup kept =
      find_calibration(kept_text(path), calibration_identity(d.facts), c.quick || !c.calibrate, std::time(nullptr));
  if (kept.calibration && !c.again) {
    d.calibration = std::move(kept.calibration);
    d.calibration_note = fmt::format("measured on {:%Y-%m-%d}, kept in {}",
                                     fmt::gmtime(static_cast<std::time_t>(d.calibration->unix_seconds)), path);
    return;
  }
  if (!c.calibrate) {
    d.calibration_note = "not measured: " + kept.why_not;
    return;
  }
  d.calibration = calibrate(d.facts, {c.quick, c.quiet});
  d.calibration_note = fmt::format("measured now, in {:.0f} s", d.calibration->took_seconds);
  if (!c.again) d.calibration_note += fmt::format(" ({})", kept.why_not);
  d.calibration_note += keep(path, *d.calibration);
}

Diagnosis live(const DoctorConfig& c) {
  if (c.threads > 0) at::set_num_threads(c.threads);
  Diagnosis d;
  d.facts = detect(RootTree(), read_gpus());
  d.torch = torch_facts();
  d.threads = d.torch->threads;
  measure(c, d);
  return d;
}

}  // namespace

int doctor(const DoctorConfig& config) {
  check(config);
  if (!config.record.empty()) return record_machine(config.record);
  Diagnosis d = config.machine.empty() ? live(config) : recorded(config);
  const Calibration* calibration = d.calibration ? &*d.calibration : nullptr;
  // Of a recorded machine it is unknown which torch runs there: it is not judged.
  const bool torch_has_gpu = !d.torch || d.torch->cuda || d.torch->rocm;
  d.verdicts = what_pays(d.facts.cpu.features, calibration);
  d.findings = advise(d.facts, {d.threads, torch_has_gpu}, calibration);
  fmt::print("{}", config.json ? report_json(d) : report_text(d));
  return 0;
}

}  // namespace hpqf::app
