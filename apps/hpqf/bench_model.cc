#include "apps/hpqf/bench_model.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "apps/hpqf/bench_batch.h"
#include "apps/hpqf/bench_progress.h"
#include "apps/hpqf/bench_report.h"
#include "apps/hpqf/bench_trainee.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

constexpr double kSlowest = 5;  // times fp32's step: above that, torch's autocast is left out

struct Row {
  std::string precision;
  std::unique_ptr<Trainee> trainee;
  std::vector<double> times;
};

PrecisionPlan make_plan(const std::string& format) {
  return format == "auto" ? engine::auto_plan() : PrecisionPlan::uniform(format);
}

// One step of autocast decides whether it takes part; its note when it does not.
std::optional<std::string> add_autocast(std::vector<Row>& rows, const models::ModelEntry& entry,
                                        const train::Batch& batch, const BenchClock& clock) {
  auto autocast = std::make_unique<Trainee>(entry, batch, Trainee::Arithmetic::torch_autocast);
  try {
    Trainee fp32(entry, batch, Trainee::Arithmetic::torch_fp32);
    fp32.step();
    const double base = clock.seconds([&] { fp32.step(); });
    const double slower = clock.seconds([&] { autocast->step(); }) / base;
    if (slower > kSlowest)
      return fmt::format("torch autocast bf16 left out: a step took {:.1f} times as long as fp32 (limit {:.0f})",
                         slower, kSlowest);
  } catch (const std::exception& e) {  // oneDNN's own type, where it has no such operation
    const std::string what = e.what();
    return "torch autocast bf16 left out, it does not run: " + what.substr(0, what.find_first_of(".\n"));
  }
  // A new one: all trainees make the same number of steps.
  rows.push_back(
      {"torch autocast bf16", std::make_unique<Trainee>(entry, batch, Trainee::Arithmetic::torch_autocast), {}});
  return std::nullopt;
}

struct LowPrecision {
  double flops = 0, emulated = 0;  // shares of the GEMM FLOPs; emulated ones are part of the former
};

LowPrecision low_precision(const Trainee& trainee) {
  LowPrecision low;
  for (const auto& share : trainee.shares()) {
    if (share.format == "fp32") continue;
    low.flops += share.flops;
    if (share.emulated) low.emulated += share.flops;
  }
  return low;
}

// Emulation has the numbers of a format, not its speed: its ratio is a price, and must not read as anything else.
std::string arithmetic(const LowPrecision& low) {
  if (low.flops == 0) return "fp32";
  if (low.emulated == 0) return "native";
  return low.emulated > 0.999 * low.flops ? "emulated" : "partly emulated";
}

std::string table(const std::vector<Row>& rows) {
  observe::TextTable table({{"precision"},
                            {"ms a step", true},
                            {"ratio", true},
                            {"quartiles", true},
                            {"low FLOPs %", true},
                            {"arithmetic"},
                            {"loss", true}});
  for (const Row& row : rows) {
    const Spread faster = ratio(rows.front().times, row.times);
    const bool audited = !row.trainee->shares().empty();
    const LowPrecision low = low_precision(*row.trainee);
    table.add({row.precision, three_digits(1e3 * spread(row.times).median), ratio_text(faster.median),
               quartiles_text(faster), audited ? observe::percent(low.flops) : "", audited ? arithmetic(low) : "torch",
               fmt::format("{:.4f}", row.trainee->loss())});
  }
  return table.text();
}

nlohmann::ordered_json json(const Row& row, const Row& base) {
  const LowPrecision low = low_precision(*row.trainee);
  const auto shares = row.trainee->shares();
  nlohmann::ordered_json j{{"precision", row.precision}};
  add_times(j, base.times, row.times);
  j["loss"] = row.trainee->loss();
  if (shares.empty()) return j;
  j["low_precision_flops"] = low.flops;
  j["emulated_flops"] = low.emulated;
  for (const auto& share : shares)
    j["formats"].push_back({{"format", share.format}, {"emulated", share.emulated}, {"flops", share.flops}});
  return j;
}

void check(const BenchModelConfig& config, const std::vector<std::string>& formats) {
  check(config.common);
  if (config.batch_size < 0 || config.batch_size > 1 << 20)
    refuse("batch-size", std::to_string(config.batch_size), "1 or more; 0 means what hpqf train takes");
  for (const std::string& format : formats) make_plan(format);
}

}  // namespace

int bench_model(const BenchModelConfig& config) {
  const models::ModelEntry& entry = models::find_model(config.model);
  const std::vector<std::string> formats = distinct("formats", config.formats);
  check(config, formats);
  at::set_num_threads(config.common.threads);
  const int64_t samples = config.batch_size > 0 ? config.batch_size : default_batch_size(config.model);
  const train::Batch batch = synthetic_batch(entry.task, samples);
  const BenchClock clock(config.common.threads);

  std::vector<Row> rows;
  std::vector<std::string> notes;
  {
    BenchProgress progress(config.common.quiet, 1, config.common.rounds);
    progress.begin(fmt::format("{}, batch {}", config.model, samples));
    rows.push_back({"torch fp32", std::make_unique<Trainee>(entry, batch, Trainee::Arithmetic::torch_fp32), {}});
    if (auto left_out = add_autocast(rows, entry, batch, clock)) notes.push_back(*left_out);
    for (const std::string& format : formats)
      rows.push_back({format, std::make_unique<Trainee>(entry, batch, make_plan(format)), {}});
    std::vector<std::function<void()>> steps;
    for (Row& row : rows) {
      if (const std::string settled = row.trainee->warm_up(); !settled.empty()) notes.push_back(settled);
      steps.emplace_back([&row] { row.trainee->step(); });
    }
    RoundTimes times = interleave(steps, config.common.rounds, clock, [&](int64_t done) { progress.round(done); });
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].times = std::move(times[i]);
  }

  nlohmann::ordered_json report = bench_json("model", config.common);
  report["model"] = config.model;
  report["batch_size"] = samples;
  for (const Row& row : rows) report["rows"].push_back(json(row, rows.front()));
  const std::string text = fmt::format("{}{}, batch {}: forward, loss, backward and optimizer on random data\n\n{}",
                                       bench_header(config.common), config.model, samples, table(rows));
  publish(config.common, text, notes, std::move(report));
  return 0;
}

}  // namespace hpqf::app
