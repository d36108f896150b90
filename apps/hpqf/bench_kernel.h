// What the benchmarks of single kernels, gemm and conv, have in common: everything but their shapes and operands.
#pragma once
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/hpqf/bench_options.h"
#include "apps/hpqf/bench_progress.h"
#include "apps/hpqf/bench_timing.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::app {

struct BenchKernelConfig {
  std::vector<std::string> forms, shapes;
  std::vector<std::string> formats{"int8", "int12"};
  std::string model;       // instead of shapes
  int64_t batch_size = 0;  // of the model; 0: its default
  std::string path;        // one of kernels::gemm_paths(); "": the best that runs
  BenchOptions common;
};

struct KernelFormat {
  std::string name;  // "int8", "int12[1x128]"
  kernels::GemmBlocks blocks;
};

// Error naming the option that cannot be followed: --formats, --path, --batch-size.
KernelFormat read_kernel_format(const std::string& text);
const kernels::GemmPath* read_kernel_path(const std::string& name);  // "": the best that runs here
void check_model_options(const std::string& model, int64_t batch_size);

constexpr double kSlowestBf16 = 20;  // times fp32's time: above that, bf16 is left out
// How many times as long as fp32 bf16 takes, by one call each.
double times_as_long(const std::function<void()>& fp32, const std::function<void()>& bf16, const BenchClock& clock);

// Where torch's bf16 turned out too slow to go on with, in the order in which that was found.
class Bf16LeftOut {
 public:
  bool contains(const std::string& what) const;
  void add(const std::string& what, const std::string& shape, double slower);
  std::vector<std::string> notes() const;

 private:
  std::vector<std::pair<std::string, std::string>> notes_;
};

// One variant of one product.
struct KernelRow {
  std::string title, format, implementation;
  std::string variant;          // the fourth column
  nlohmann::ordered_json head;  // of its JSON, before the figures
  double gflop = 0, error = 0;
  std::vector<double> times, base;
};

// `headings`: of the first and the fourth column.
void publish_kernels(const std::string& benchmark, const BenchOptions& options,
                     std::pair<const char*, const char*> headings, const std::string& meanings,
                     const std::vector<KernelRow>& rows, const Bf16LeftOut& left_out);

template <class Shape, class Form>
struct KernelPlan {
  std::vector<KernelFormat> formats;
  std::vector<Shape> shapes;
  std::vector<const Form*> forms;
  const kernels::GemmPath* path = nullptr;
};

// What is a benchmark's own.
template <class Shape, class Form>
struct KernelBench {
  const char* name;
  std::pair<const char*, const char*> headings;
  Shape (*parse_shape)(const std::string&);
  std::vector<Shape> (*model_shapes)(const std::string& model, int64_t batch_size);
  const Form& (*find_form)(const std::string&);
  std::vector<KernelRow> (*measure)(const Shape&, const Form&, const KernelPlan<Shape, Form>&, const BenchOptions&,
                                    Bf16LeftOut&, BenchProgress&);
};

template <class Shape, class Form>
KernelPlan<Shape, Form> read_kernel_plan(const KernelBench<Shape, Form>& bench, const BenchKernelConfig& config) {
  check(config.common);
  check_model_options(config.model, config.batch_size);
  KernelPlan<Shape, Form> plan;
  for (const std::string& text : distinct("formats", config.formats)) plan.formats.push_back(read_kernel_format(text));
  for (const std::string& text : distinct("forms", config.forms)) plan.forms.push_back(&bench.find_form(text));
  plan.path = read_kernel_path(config.path);
  if (config.model.empty()) {
    for (const std::string& text : distinct("shapes", config.shapes)) plan.shapes.push_back(bench.parse_shape(text));
  } else {
    plan.shapes = bench.model_shapes(config.model, config.batch_size);
  }
  return plan;
}

template <class Shape, class Form>
int run_kernel_bench(const KernelBench<Shape, Form>& bench, const BenchKernelConfig& config) {
  const auto plan = read_kernel_plan(bench, config);
  at::set_num_threads(config.common.threads);
  // Attached to nothing: it lends torch's threads to the kernels.
  const engine::Runtime threads(engine::ModelDescription{}, PrecisionPlan{});
  std::vector<KernelRow> rows;
  Bf16LeftOut left_out;
  {
    BenchProgress progress(config.common.quiet, static_cast<int64_t>(plan.shapes.size() * plan.forms.size()),
                           config.common.rounds);
    for (const Shape& shape : plan.shapes) {
      for (const Form* form : plan.forms) {
        for (KernelRow& row : bench.measure(shape, *form, plan, config.common, left_out, progress))
          rows.push_back(std::move(row));
      }
    }
  }
  std::string meanings;
  for (const Form* form : plan.forms) meanings += fmt::format("{}: {}\n", form->name, form->meaning);
  publish_kernels(bench.name, config.common, bench.headings, meanings, rows, left_out);
  return 0;
}

}  // namespace hpqf::app
