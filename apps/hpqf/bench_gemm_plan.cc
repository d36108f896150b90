#include "apps/hpqf/bench_gemm_plan.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"
#include "hpqf/formats/block_format.h"

namespace hpqf::app {
namespace {

GemmFormat read_format(const std::string& text) {
  constexpr const char* kAllowed =
      "int8, int12, or with blocks of 32, 64, 128 or 256, as int8[1x128]: what the integer GEMM computes in";
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

const kernels::GemmPath* read_path(const std::string& name) {
  std::string runnable;
  for (const kernels::GemmPath& path : kernels::gemm_paths()) {
    if (!path.runnable()) continue;
    if (path.name == name) return &path;
    runnable += fmt::format("{}{}", runnable.empty() ? "" : ", ", path.name);
  }
  if (name.empty()) {
    if (const kernels::GemmPath* best = kernels::best_gemm_path()) return best;
    throw Error("an integer GEMM on this CPU", fmt::format("{} (not made for work)", runnable),
                "add --path " + runnable);
  }
  for (const kernels::GemmPath& path : kernels::gemm_paths()) {
    if (path.name == name) refuse("path", name, fmt::format("{}; {} needs {}", runnable, name, path.needs));
  }
  refuse("path", name, runnable);
}

}  // namespace

GemmBenchPlan read_gemm_plan(const BenchGemmConfig& config) {
  check(config.common);
  if (config.batch_size < 0) refuse("batch-size", std::to_string(config.batch_size), "1 or more");
  if (config.batch_size > 0 && config.model.empty())
    throw Error("--batch-size without --model", "the batch size of a model whose shapes to take", "add --model NAME");
  GemmBenchPlan plan;
  for (const std::string& text : distinct("formats", config.formats)) plan.formats.push_back(read_format(text));
  for (const std::string& text : distinct("forms", config.forms)) plan.forms.push_back(&find_gemm_form(text));
  plan.path = read_path(config.path);
  if (config.model.empty()) {
    for (const std::string& text : distinct("shapes", config.shapes)) plan.shapes.push_back(parse_shape(text));
  } else {
    plan.shapes = model_shapes(config.model, config.batch_size);
  }
  return plan;
}

}  // namespace hpqf::app
