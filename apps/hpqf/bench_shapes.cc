#include "apps/hpqf/bench_shapes.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "apps/hpqf/bench_batch.h"
#include "apps/hpqf/bench_options.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/human.h"
#include "models/registry.h"

namespace hpqf::app {
namespace {

constexpr int64_t kLargest = int64_t{1} << 24;

std::optional<int64_t> size(std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  return whole && value >= 1 && value <= kLargest ? std::optional(value) : std::nullopt;
}

// Operands and result in fp32 and bf16, the packed weight in each format, and its copy in fp64.
double needed_bytes(const LinearShape& s) {
  const double m = static_cast<double>(s.m), k = static_cast<double>(s.k), n = static_cast<double>(s.n);
  return 16 * (m * k + k * n + m * n);
}

}  // namespace

double memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string to_string(const LinearShape& s) { return fmt::format("{}x{}x{}", s.m, s.k, s.n); }

LinearShape parse_shape(const std::string& text) {
  std::vector<std::optional<int64_t>> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    sizes.push_back(size(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  if (sizes.size() != 3 || std::any_of(sizes.begin(), sizes.end(), [](const auto& s) { return !s; }))
    refuse("shapes", text, "MxKxN, rows x inputs x outputs, each from 1 to 16777216: for example 2048x512x2048");
  const LinearShape shape{*sizes[0], *sizes[1], *sizes[2]};
  if (const double needed = needed_bytes(shape); needed > memory_bytes() / 2)
    refuse("shapes", text,
           fmt::format("sizes that need at most half of this machine's {} of memory; this one needs about {}",
                       observe::human_bytes(memory_bytes()), observe::human_bytes(needed)));
  return shape;
}

std::map<std::string, engine::ProblemShape> seen_shapes(const std::string& model, int64_t batch_size) {
  const models::ModelEntry& entry = models::find_model(model);
  const models::Model instance = entry.make({});
  engine::Runtime runtime(*instance.module, engine::auto_plan());  // unsettled: the engine notes what layers compute
  const at::NoGradGuard no_grad;
  instance.forward(synthetic_batch(entry.task, batch_size > 0 ? batch_size : default_batch_size(model)).data);
  return runtime.take_shapes();
}

std::vector<LinearShape> model_shapes(const std::string& model, int64_t batch_size) {
  std::vector<LinearShape> shapes;
  for (const auto& [layer, seen] : seen_shapes(model, batch_size)) {
    if (seen.op != "linear") continue;
    const LinearShape shape{seen.a.at(0), seen.b.at(1), seen.b.at(0)};
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  if (shapes.empty()) throw Error("the shapes of " + model, "a model with a linear layer", "give --shapes");
  return shapes;
}

}  // namespace hpqf::app
