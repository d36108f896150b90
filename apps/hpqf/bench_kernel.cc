#include "apps/hpqf/bench_kernel.h"

#include <algorithm>

#include "apps/hpqf/bench_report.h"
#include "hpqf/base/error.h"
#include "hpqf/formats/block_format.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

constexpr double kFirstCall = 1;  // s: a shorter first call may be the library's preparation, and is repeated

}  // namespace

KernelFormat read_kernel_format(const std::string& text) {
  constexpr const char* kAllowed =
      "int8, int12, or with blocks of 32, 64, 128 or 256, as int8[1x128]: what the integer kernels compute in";
  formats::BlockFormat format;
  try {
    format = formats::parse_block_format(text);
  } catch (const Error&) {
    refuse("formats", text, kAllowed);
  }
  const bool integer = format.format == Format::int8 || format.format == Format::int12;
  const bool blocks = format.shape == formats::BlockShape::vector && format.scale == formats::ScaleType::fp32 &&
                      (format.block == 32 || format.block == 64 || format.block == 128 || format.block == 256);
  if (!integer || !blocks) refuse("formats", text, kAllowed);
  const auto grid = format.format == Format::int8 ? kernels::Grid::int8 : kernels::Grid::int12;
  return {formats::to_string(format), {grid, format.block}};
}

const kernels::GemmPath* read_kernel_path(const std::string& name) {
  std::string runnable;
  for (const kernels::GemmPath& path : kernels::gemm_paths()) {
    if (!path.runnable()) continue;
    if (path.name == name) return &path;
    runnable += fmt::format("{}{}", runnable.empty() ? "" : ", ", path.name);
  }
  if (name.empty()) {
    if (const kernels::GemmPath* best = kernels::best_gemm_path()) return best;
    throw Error("the integer kernels on this CPU", fmt::format("{} (not made for work)", runnable),
                "add --path " + runnable);
  }
  for (const kernels::GemmPath& path : kernels::gemm_paths()) {
    if (path.name == name) refuse("path", name, fmt::format("{}; {} needs {}", runnable, name, path.needs));
  }
  refuse("path", name, runnable);
}

void check_model_options(const std::string& model, int64_t batch_size) {
  if (batch_size < 0) refuse("batch-size", std::to_string(batch_size), "1 or more");
  if (batch_size > 0 && model.empty())
    throw Error("--batch-size without --model", "the batch size of a model whose shapes to take", "add --model NAME");
}

double times_as_long(const std::function<void()>& fp32, const std::function<void()>& bf16, const BenchClock& clock) {
  fp32();
  const double base = clock.seconds(fp32);
  double seconds = clock.seconds(bf16);
  if (seconds > kSlowestBf16 * base && seconds < kFirstCall) seconds = clock.seconds(bf16);
  return seconds / base;
}

bool Bf16LeftOut::contains(const std::string& what) const {
  return std::any_of(notes_.begin(), notes_.end(), [&](const auto& note) { return note.first == what; });
}

void Bf16LeftOut::add(const std::string& what, const std::string& shape, double slower) {
  notes_.emplace_back(what, fmt::format("torch bf16 left out of {} from {} on: it took {:.0f} times as long as fp32 "
                                        "(limit {:.0f})",
                                        what, shape, slower, kSlowestBf16));
}

std::vector<std::string> Bf16LeftOut::notes() const {
  std::vector<std::string> all;
  for (const auto& [what, note] : notes_) all.push_back(note);
  return all;
}

void publish_kernels(const std::string& benchmark, const BenchOptions& options,
                     std::pair<const char*, const char*> headings, const std::string& meanings,
                     const std::vector<KernelRow>& rows, const Bf16LeftOut& left_out) {
  observe::TextTable table({{headings.first},
                            {"format"},
                            {"path"},
                            {headings.second},
                            {"ms", true},
                            {"GFLOP/s", true},
                            {"ratio", true},
                            {"quartiles", true},
                            {"error", true}});
  nlohmann::ordered_json report = bench_json(benchmark, options);
  std::string last;
  for (const KernelRow& row : rows) {
    const double seconds = spread(row.times).median;
    const Spread faster = ratio(row.base, row.times);
    table.add({row.title == last ? "" : row.title, row.format, row.implementation, row.variant,
               three_digits(1e3 * seconds), three_digits(row.gflop / seconds), ratio_text(faster.median),
               quartiles_text(faster), error_text(row.error)});
    last = row.title;
    nlohmann::ordered_json json = row.head;
    json["gflops"] = row.gflop / seconds;
    json["error"] = row.error;
    add_times(json, row.base, row.times);
    report["rows"].push_back(std::move(json));
  }
  publish(options, bench_header(options) + meanings + "\n" + table.text(), left_out.notes(), std::move(report));
}

}  // namespace hpqf::app
