#include "apps/hpqf/bench_gemm.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <functional>
#include <map>

#include "apps/hpqf/bench_gemm_plan.h"
#include "apps/hpqf/bench_progress.h"
#include "apps/hpqf/bench_report.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

struct Row {
  std::string shape_and_form, format, implementation;
  LinearShape shape;
  const GemmForm* form;
  bool packed = false;
  double gflop = 0, error = 0;
  std::vector<double> times, base;
};

// The note for each form in which torch's bf16 turned out too slow to go on with.
using LeftOut = std::map<const GemmForm*, std::string>;

struct Variant {
  std::string format, implementation;
  bool packed = false;
  std::function<const at::Tensor&()> run;
};

std::vector<Variant> variants(GemmCase& product, const GemmForm& form, const GemmBenchPlan& plan, bool bf16) {
  std::vector<Variant> all;
  all.push_back({"fp32", "torch", false, [&]() -> const at::Tensor& { return product.torch_fp32(); }});
  if (bf16) all.push_back({"bf16", "torch", false, [&]() -> const at::Tensor& { return product.torch_bf16(); }});
  for (const KernelFormat& format : plan.formats) {
    const kernels::GemmPath& path = *plan.path;
    const kernels::GemmBlocks blocks = format.blocks;
    all.push_back({format.name, path.name, false,
                   [&product, &path, blocks]() -> const at::Tensor& { return product.integer(path, blocks); }});
    if (!form.weight_operand) continue;
    all.push_back({format.name, path.name, true,
                   [&product, &path, blocks, packed = product.pack(path, blocks)]() -> const at::Tensor& {
                     return product.integer(path, blocks, packed);
                   }});
  }
  return all;
}

std::vector<Row> measure(const LinearShape& shape, const GemmForm& form, const GemmBenchPlan& plan,
                         const BenchOptions& options, LeftOut& bf16_left_out, BenchProgress& progress) {
  const BenchClock clock(options.threads);
  GemmCase product(shape, form);
  const std::string name = fmt::format("{} {}", to_string(shape), form.name);
  progress.begin(name);
  if (!bf16_left_out.contains(&form)) {
    const double slower = times_as_long([&] { product.torch_fp32(); }, [&] { product.torch_bf16(); }, clock);
    if (slower > kSlowestBf16) bf16_left_out[&form] = bf16_note(form.name, to_string(shape), slower);
  }
  std::vector<Row> rows;
  std::vector<std::function<void()>> calls;
  for (const Variant& variant : variants(product, form, plan, !bf16_left_out.contains(&form))) {
    rows.push_back({name, variant.format, variant.implementation, shape, &form, variant.packed, product.flops() * 1e-9,
                    product.error(variant.run())});
    calls.emplace_back(variant.run);
  }
  const RoundTimes times = interleave(calls, options.rounds, clock, [&](int64_t done) { progress.round(done); });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].times = times[i], rows[i].base = times[0];
  return rows;
}

std::string table(const std::vector<Row>& rows) {
  observe::TextTable table({{"rows x in x out"},
                            {"format"},
                            {"path"},
                            {"weight"},
                            {"ms", true},
                            {"GFLOP/s", true},
                            {"ratio", true},
                            {"quartiles", true},
                            {"error", true}});
  std::string last;
  for (const Row& row : rows) {
    const double seconds = spread(row.times).median;
    const Spread faster = ratio(row.base, row.times);
    table.add({row.shape_and_form == last ? "" : row.shape_and_form, row.format, row.implementation,
               row.packed ? "packed once" : "", three_digits(1e3 * seconds), three_digits(row.gflop / seconds),
               ratio_text(faster.median), quartiles_text(faster), error_text(row.error)});
    last = row.shape_and_form;
  }
  return table.text();
}

nlohmann::ordered_json json(const Row& row) {
  nlohmann::ordered_json j{{"form", row.form->name}, {"m", row.shape.m},
                           {"k", row.shape.k},       {"n", row.shape.n},
                           {"format", row.format},   {"implementation", row.implementation},
                           {"packed", row.packed},   {"gflops", row.gflop / spread(row.times).median},
                           {"error", row.error}};
  add_times(j, row.base, row.times);
  return j;
}

}  // namespace

int bench_gemm(const BenchGemmConfig& config) {
  const GemmBenchPlan plan = read_gemm_plan(config);
  at::set_num_threads(config.common.threads);
  // Attached to nothing: it lends torch's threads to the kernels.
  const engine::Runtime threads(engine::ModelDescription{}, PrecisionPlan{});

  std::vector<Row> rows;
  LeftOut bf16_left_out;
  {
    BenchProgress progress(config.common.quiet, static_cast<int64_t>(plan.shapes.size() * plan.forms.size()),
                           config.common.rounds);
    for (const LinearShape& shape : plan.shapes) {
      for (const GemmForm* form : plan.forms) {
        for (Row& row : measure(shape, *form, plan, config.common, bf16_left_out, progress))
          rows.push_back(std::move(row));
      }
    }
  }

  std::vector<std::string> notes;
  for (const auto& [form, note] : bf16_left_out) notes.push_back(note);
  nlohmann::ordered_json report = bench_json("gemm", config.common);
  for (const Row& row : rows) report["rows"].push_back(json(row));
  std::string text = bench_header(config.common);
  for (const GemmForm* form : plan.forms) text += fmt::format("{}: {}\n", form->name, form->meaning);
  publish(config.common, text + "\n" + table(rows), notes, std::move(report));
  return 0;
}

}  // namespace hpqf::app
