#include "hpqf/engine/rates.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "hpqf/base/file.h"
#include "hpqf/device/device.h"
#include "hpqf/engine/problem.h"

namespace hpqf::engine {
namespace {

// Runs of a pair; small problems are repeated until the best of many is no longer that of a disturbed moment.
constexpr int kLeastRuns = 5, kMostRuns = 60;
constexpr double kSeconds = 0.1;
constexpr int kVersion = 2;

std::string machine() {
  const auto& cpu = device::cpu();
  return fmt::format("{} {} {} threads torch {}", cpu.brand, cpu.isa(), at::get_num_threads(), TORCH_VERSION);
}

class Store {
 public:
  std::mutex mutex;
  nlohmann::json& rates() {
    if (!loaded_) load();
    return content_["machines"][machine()];
  }
  void save() const {
    const std::filesystem::path path = base::cache_file("rates.json");
    if (path.empty()) return;
    try {
      std::filesystem::create_directories(path.parent_path());
      base::atomic_write(path.string(), content_.dump(1) + "\n");
    } catch (const std::exception&) {  // NOLINT: a read-only home costs a measurement in the next process, no more
    }
  }

 private:
  void load() {
    loaded_ = true;
    content_ = {{"schema", "hpqf.rates"}, {"version", kVersion}};
    try {
      const std::filesystem::path path = base::cache_file("rates.json");
      if (path.empty() || !std::filesystem::exists(path)) return;
      auto read = nlohmann::json::parse(base::read_file(path.string()));
      if (read.value("schema", "") == "hpqf.rates" && read.value("version", 0) == kVersion) content_ = std::move(read);
    } catch (const std::exception&) {  // NOLINT: damaged: measured anew
    }
  }
  bool loaded_ = false;
  nlohmann::json content_;
};

Store& store() {
  static Store s;
  return s;
}

Rate measure(const ProblemShape& shape, const BlockFormat& format) {
  at::AutoGradMode grad(true);
  const PrecisionPlan fp32, low = PrecisionPlan::uniform(formats::to_string(format));
  Problem problem(shape);
  if (std::string why = problem.emulated(low); !why.empty()) return {0, 0, std::move(why)};
  double best_fp32 = std::numeric_limits<double>::infinity(), best = best_fp32;
  double spent = 0;
  for (int i = 0; i < kLeastRuns || (i < kMostRuns && spent < kSeconds); ++i) {
    const double a = problem.seconds(fp32), b = problem.seconds(low);
    best_fp32 = std::min(best_fp32, a);
    best = std::min(best, b);
    spent += a + b;
  }
  return {best, best_fp32 / best};
}

}  // namespace

ProblemShape shape_class(const ProblemShape& shape) {
  ProblemShape c = shape;
  // A convolution's rows are pixels, of which a few images have enough; recurrent layers repeat themselves after some
  // steps.
  const auto [least, most] =
      shape.op == "linear" ? std::pair<int64_t, int64_t>{16, 1024} : std::pair<int64_t, int64_t>{1, 16};
  c.a.front() = int64_t(std::bit_floor(uint64_t(std::clamp(shape.a.front(), least, most))));
  return c;
}

std::string to_string(const ProblemShape& s) {
  if (s.a.size() == 3)
    return fmt::format("{} {} layers of {}{}, {} inputs, {} steps of {} sequences", s.op, s.b[0], s.b[1],
                       s.b[2] == 2 ? " both ways" : "", s.a[2], s.a[0], s.a[1]);
  if (s.geometry.empty()) return fmt::format("{} {}x{}x{}", s.op, s.a.at(0), s.b.at(0), s.b.at(1));
  const auto& g = s.geometry;
  std::string text = fmt::format("{} {} to {} channels {}x{}, {} images of {}x{}", s.op, s.a[1], s.b[0], s.b[2], s.b[3],
                                 s.a[0], s.a[2], s.a[3]);
  if (g[0] != 1 || g[1] != 1) text += fmt::format(", stride {}x{}", g[0], g[1]);
  if (g[2] != 0 || g[3] != 0) text += fmt::format(", padding {}x{}", g[2], g[3]);
  if (g[4] != 1 || g[5] != 1) text += fmt::format(", dilation {}x{}", g[4], g[5]);
  if (g[6] != 1) text += fmt::format(", {} groups", g[6]);
  return text;
}

Rate rate(const ProblemShape& shape, const BlockFormat& format) {
  const ProblemShape c = shape_class(shape);
  const std::string key = fmt::format("{}{} {}", to_string(c), c.bias ? " bias" : "", formats::to_string(format));
  Store& s = store();
  std::lock_guard lock(s.mutex);
  nlohmann::json& rates = s.rates();
  if (rates.contains(key) && rates[key].is_array() && rates[key].size() == 3)
    return {rates[key][0].get<double>(), rates[key][1].get<double>(), rates[key][2].get<std::string>()};
  Rate measured = measure(c, format);
  rates[key] = {measured.seconds, measured.ratio, measured.refused};
  s.save();
  return measured;
}

}  // namespace hpqf::engine
