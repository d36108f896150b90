#include "apps/hpqf/calibrate.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <ctime>

#include "apps/hpqf/bench_gemm_case.h"
#include "apps/hpqf/bench_kernel.h"
#include "apps/hpqf/bench_progress.h"
#include "apps/hpqf/bench_timing.h"
#include "apps/hpqf/calibrate_bandwidth.h"
#include "apps/hpqf/calibrate_noise.h"
#include "hpqf/base/clock.h"
#include "hpqf/engine/rates.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::app {
namespace {

using device::machine::Calibration;
using device::machine::LayerFigure;
using device::machine::Measured;
using device::machine::ProductFigure;

constexpr double kBudget = 60, kQuickBudget = 20;  // s
constexpr double kRoundsTime = 1.5;                // s that the rounds of one shape may take
constexpr int64_t kLeastRounds = 3, kMostRounds = 21;
constexpr int kYardstickRuns = 15;

// Square, wide and few rows: what a product gains depends on it.
const std::vector<LinearShape> kShapes{{512, 512, 512}, {1024, 768, 3072}, {32, 1024, 1024}};

class Deadline {
 public:
  explicit Deadline(double seconds) : begin_(base::steady_ns()), seconds_(seconds) {}
  double elapsed() const { return static_cast<double>(base::steady_ns() - begin_) * 1e-9; }
  double left() const { return seconds_ - elapsed(); }

 private:
  int64_t begin_;
  double seconds_;
};

// A kind of work that may be left out when time runs short.
struct Work {
  std::string name;
  double seconds;  // that it may need at worst
  std::function<void()> run;
};

Measured measured(const std::vector<double>& values) {
  const Spread s = spread(values);
  return {s.median, s.q1, s.q3, static_cast<int>(values.size())};
}

struct Variant {
  std::string format, implementation;
  std::function<void()> run;
};

// As many rounds as fit into kRoundsTime, by one call each.
int64_t rounds_for(const std::vector<std::function<void()>>& calls, const BenchClock& clock, bool quick) {
  double once = 0;
  for (const auto& call : calls) {
    call();
    once += clock.seconds(call);
  }
  const double time = quick ? kRoundsTime / 3 : kRoundsTime;
  return std::clamp(static_cast<int64_t>(time / std::max(once, 1e-6)), kLeastRounds, kMostRounds);
}

// Against fp32, which is the first of the variants.
void time_products(const LinearShape& shape, const std::vector<Variant>& variants, double gflop, bool quick,
                   bool with_fp32, Calibration& out) {
  const BenchClock clock(at::get_num_threads());
  std::vector<std::function<void()>> calls;
  for (const Variant& v : variants) calls.push_back(v.run);
  const RoundTimes times = interleave(calls, rounds_for(calls, clock, quick), clock, [](int64_t) {});
  for (size_t i = with_fp32 ? 0 : 1; i < variants.size(); ++i) {
    std::vector<double> rates, ratios;
    for (size_t round = 0; round < times[i].size(); ++round) {
      rates.push_back(gflop / times[i][round]);
      ratios.push_back(times[0][round] / times[i][round]);
    }
    out.products.push_back(
        {variants[i].format, to_string(shape), variants[i].implementation, measured(rates), measured(ratios), ""});
  }
}

void products(const LinearShape& shape, bool quick, Calibration& out) {
  GemmCase product(shape, find_gemm_form("nt"));
  const double gflop = product.flops() * 1e-9;
  const kernels::GemmPath* path = read_kernel_path("");
  const Variant fp32{"fp32", "torch", [&] { product.torch_fp32(); }};
  std::vector<Variant> fast{fp32};
  for (const char* name : {"int8", "int12"}) {
    const KernelFormat format = read_kernel_format(name);
    fast.push_back({name, path->name, [&product, path, blocks = format.blocks] { product.integer(*path, blocks); }});
  }
  time_products(shape, fast, gflop, quick, /*with_fp32=*/true, out);

  const BenchClock clock(at::get_num_threads());
  auto bf16 = [&] { product.torch_bf16(); };
  const double slower = times_as_long(fp32.run, bf16, clock);
  if (slower > kSlowestBf16) {
    out.products.push_back({"bf16",
                            to_string(shape),
                            "torch",
                            {},
                            {},
                            fmt::format("takes {:.0f} times as long as fp32 (one call)", slower)});
  } else {
    time_products(shape, {fp32, {"bf16", "torch", bf16}}, gflop, quick, /*with_fp32=*/false, out);
  }
}

void layer(const LinearShape& s, const std::string& format, Calibration& out) {
  engine::ProblemShape shape{"linear", {s.m, s.k}, {s.n, s.k}, {}, true, 2.0 * s.m * s.k * s.n};
  const engine::Rate rate = engine::rate(shape, formats::parse_block_format(format));
  out.layers.push_back({format, to_string(s), rate.seconds, rate.ratio, rate.refused});
}

// Equal fp32 products by the clock on the wall, which others on the machine do disturb.
double yardstick() {
  GemmCase product(kShapes.front(), find_gemm_form("nt"));
  const BenchClock wall(2);
  product.torch_fp32();
  std::vector<double> times;
  for (int i = 0; i < kYardstickRuns; ++i) times.push_back(wall.seconds([&] { product.torch_fp32(); }));
  const Spread s = spread(times);
  return (s.q3 - s.q1) / s.median;
}

std::vector<Work> all_work(const CalibrateOptions& options, NoiseWatch& noise, Calibration& out) {
  const int runs = options.quick ? 3 : 9;
  const size_t shapes = options.quick ? 1 : kShapes.size();
  std::vector<Work> work;
  work.push_back({"how quiet the machine is", 2, [&] { noise.yardstick(yardstick()); }});
  for (size_t i = 0; i < shapes; ++i) {
    const LinearShape shape = kShapes[i];
    work.push_back({"products " + to_string(shape), 8, [&, shape] { products(shape, options.quick, out); }});
    for (const char* format : {"int8", "int12", "bf16", "fp16"})
      work.push_back(
          {fmt::format("layer {} {}", to_string(shape), format), 4, [&, shape, format] { layer(shape, format, out); }});
  }
  for (auto* bandwidth : {&copy_bandwidth, &quantise_bandwidth, &optimizer_bandwidth, &loopback_bandwidth})
    work.push_back({"bandwidths", 3, [&out, bandwidth, runs] {
                      if (auto figure = bandwidth(runs); figure.gigabytes.runs > 0) out.bandwidths.push_back(figure);
                    }});
  return work;
}

}  // namespace

device::machine::CalibrationIdentity calibration_identity(const device::machine::MachineFacts& facts) {
  const device::CpuFeatures& cpu = device::cpu();
  return {cpu.brand,           cpu.isa(),
          TORCH_VERSION,       at::get_num_threads(),
          facts.usable_cpus(), facts.limits.cpu_quota.value_or(0)};
}

Calibration calibrate(const device::machine::MachineFacts& facts, const CalibrateOptions& options) {
  // Attached to nothing: it lends torch's threads to the kernels.
  const engine::Runtime threads(engine::ModelDescription{}, PrecisionPlan{});
  const device::machine::RootTree tree;
  NoiseWatch noise(tree, facts);
  Calibration out;
  out.identity = calibration_identity(facts);
  out.unix_seconds = std::time(nullptr);
  out.quick = options.quick;
  const Deadline deadline(options.quick ? kQuickBudget : kBudget);
  const std::vector<Work> work = all_work(options, noise, out);
  BenchProgress progress(options.quiet, static_cast<int64_t>(work.size()), 1);
  for (const Work& item : work) {
    progress.begin(item.name);
    if (deadline.left() < item.seconds)
      out.left_out.push_back(item.name);
    else
      item.run();
  }
  out.noise = noise.result();
  out.took_seconds = deadline.elapsed();
  return out;
}

}  // namespace hpqf::app
