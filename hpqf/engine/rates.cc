#include "hpqf/engine/rates.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/device/device.h"
#include "hpqf/engine/instrument.h"
#include "hpqf/engine/runtime.h"

namespace hpqf::engine {
namespace {

constexpr int kRuns = 4;  // the first warms caches and libraries
constexpr int kVersion = 1;

std::filesystem::path cache_file() {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (base && *base) return std::filesystem::path(base) / "hpqf" / "rates.json";
  if (home && *home) return std::filesystem::path(home) / ".cache" / "hpqf" / "rates.json";
  return {};
}

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
    const auto path = cache_file();
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
      const auto path = cache_file();
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

// A layer of its own under a plan of its own.
class Problem {
 public:
  explicit Problem(const ProblemShape& shape)
      : x_(at::randn(shape.a).requires_grad_()), w_(at::randn(shape.b).requires_grad_()) {
    if (shape.bias) bias_ = at::randn({shape.b.front()}).requires_grad_();
    geometry_ = shape.geometry;
    g_ = at::randn(forward().sizes());
  }

  double seconds(const PrecisionPlan& plan) {
    plan::ModelFacts facts{"rates", {{"layer", "Linear", plan::LayerKind::linear, w_.numel()}}};
    Runtime runtime(ModelDescription{facts, {{"layer", "weight", w_}}}, plan);
    {
      at::NoGradGuard no_grad;
      w_.mul_(1.0);  // a new version: copies of the weight are made anew, as after an optimizer step
    }
    for (auto* t : {&x_, &w_}) t->mutable_grad() = at::Tensor();
    const int64_t start = now_ns();
    at::Tensor y;
    {
      const LayerScope inside(runtime.layer("layer"));
      y = forward();
    }
    y.backward(g_);
    return double(now_ns() - start) * 1e-9;
  }

 private:
  at::Tensor forward() const {
    const auto& g = geometry_;
    if (g.empty()) return at::linear(x_, w_, bias_);
    return at::conv2d(x_, w_, bias_, {g[0], g[1]}, {g[2], g[3]}, {g[4], g[5]}, g[6]);
  }
  at::Tensor x_, w_, g_;
  std::vector<int64_t> geometry_;
  std::optional<at::Tensor> bias_;
};

Rate measure(const ProblemShape& shape, const BlockFormat& format) {
  at::AutoGradMode grad(true);
  const PrecisionPlan fp32, low = PrecisionPlan::uniform(formats::to_string(format));
  Problem problem(shape);
  double best_fp32 = std::numeric_limits<double>::infinity(), best = best_fp32;
  for (int i = 0; i < kRuns; ++i) {
    best_fp32 = std::min(best_fp32, problem.seconds(fp32));
    best = std::min(best, problem.seconds(low));
  }
  return {best, best_fp32 / best};
}

}  // namespace

ProblemShape shape_class(const ProblemShape& shape) {
  ProblemShape c = shape;
  // A convolution's rows are pixels: a few images are enough.
  const auto [least, most] =
      shape.op == "conv" ? std::pair<int64_t, int64_t>{1, 16} : std::pair<int64_t, int64_t>{16, 1024};
  c.a.front() = int64_t(std::bit_floor(uint64_t(std::clamp(shape.a.front(), least, most))));
  return c;
}

std::string to_string(const ProblemShape& s) {
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
  if (rates.contains(key) && rates[key].is_array() && rates[key].size() == 2)
    return {rates[key][0].get<double>(), rates[key][1].get<double>()};
  const Rate measured = measure(c, format);
  rates[key] = {measured.seconds, measured.ratio};
  s.save();
  return measured;
}

}  // namespace hpqf::engine
