#include "apps/hpqf/bench_conv.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <functional>
#include <map>

#include "apps/hpqf/bench_conv_case.h"
#include "apps/hpqf/bench_conv_shapes.h"
#include "apps/hpqf/bench_kernel.h"
#include "apps/hpqf/bench_progress.h"
#include "apps/hpqf/bench_report.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using kernels::ConvShape;
using kernels::ImageLayout;

struct Layout {
  const char* name;
  ImageLayout layout;
};
constexpr Layout kLayouts[] = {{"channels first", ImageLayout::channels_first},
                               {"channels last", ImageLayout::channels_last}};

struct Plan {
  std::vector<KernelFormat> formats;
  std::vector<ConvShape> shapes;
  std::vector<const ConvForm*> forms;
  const kernels::GemmPath* path = nullptr;
};

struct Row {
  std::string shape_and_form, shape, format, implementation, layout;
  const ConvForm* form;
  double gflop = 0, error = 0;
  std::vector<double> times, base;
};

Plan read_plan(const BenchConvConfig& config) {
  check(config.common);
  check_model_options(config.model, config.batch_size);
  Plan plan;
  for (const std::string& text : distinct("formats", config.formats)) plan.formats.push_back(read_kernel_format(text));
  for (const std::string& text : distinct("forms", config.forms)) plan.forms.push_back(&find_conv_form(text));
  plan.path = read_kernel_path(config.path);
  if (config.model.empty()) {
    for (const std::string& text : distinct("shapes", config.shapes)) plan.shapes.push_back(parse_conv_shape(text));
  } else {
    plan.shapes = model_conv_shapes(config.model, config.batch_size);
  }
  return plan;
}

// The rows of one product. The base of all ratios is torch's fp32 in the layout that is faster by its median.
std::vector<Row> measure(const ConvShape& shape, const ConvForm& form, const Plan& plan, const BenchOptions& options,
                         std::map<std::string, std::string>& bf16_left_out, BenchProgress& progress) {
  const BenchClock clock(options.threads);
  const std::string name = fmt::format("{} {}", to_string(shape), form.name);
  progress.begin(name);
  std::vector<ConvCase> cases;
  for (const Layout& layout : kLayouts) cases.emplace_back(shape, form.product, layout.layout);

  std::vector<Row> rows;
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ConvCase& product = cases[i];
    const auto add = [&](const std::string& format, const char* implementation, std::function<at::Tensor()> run) {
      rows.push_back({name, to_string(shape), format, implementation, kLayouts[i].name, &form, product.flops() * 1e-9,
                      product.error(run())});
      calls.emplace_back([run = std::move(run)] { run(); });
    };
    add("fp32", "torch", [&] { return product.torch_fp32(); });
    const std::string key = fmt::format("{}, {}", form.name, kLayouts[i].name);
    if (!bf16_left_out.contains(key)) {
      const double slower = times_as_long([&] { product.torch_fp32(); }, [&] { product.torch_bf16(); }, clock);
      if (slower > kSlowestBf16) {
        bf16_left_out[key] = bf16_note(key, to_string(shape), slower);
      } else {
        add("bf16", "torch", [&] { return product.torch_bf16(); });
      }
    }
    for (const KernelFormat& format : plan.formats) {
      add(format.name, plan.path->name,
          [&product, &path = *plan.path, blocks = format.blocks] { return product.integer(path, blocks); });
    }
  }
  const RoundTimes times = interleave(calls, options.rounds, clock, [&](int64_t done) { progress.round(done); });
  std::size_t base = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool fp32 = rows[i].format == "fp32";
    if (fp32 && spread(times[i]).median < spread(times[base]).median) base = i;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].times = times[i], rows[i].base = times[base];
  return rows;
}

std::string table(const std::vector<Row>& rows) {
  observe::TextTable table({{"images x in x size x out"},
                            {"format"},
                            {"path"},
                            {"layout"},
                            {"ms", true},
                            {"GFLOP/s", true},
                            {"ratio", true},
                            {"quartiles", true},
                            {"error", true}});
  std::string last;
  for (const Row& row : rows) {
    const double seconds = spread(row.times).median;
    const Spread faster = ratio(row.base, row.times);
    table.add({row.shape_and_form == last ? "" : row.shape_and_form, row.format, row.implementation, row.layout,
               three_digits(1e3 * seconds), three_digits(row.gflop / seconds), ratio_text(faster.median),
               quartiles_text(faster), error_text(row.error)});
    last = row.shape_and_form;
  }
  return table.text();
}

nlohmann::ordered_json json(const Row& row) {
  nlohmann::ordered_json j{{"form", row.form->name}, {"shape", row.shape},
                           {"format", row.format},   {"implementation", row.implementation},
                           {"layout", row.layout},   {"gflops", row.gflop / spread(row.times).median},
                           {"error", row.error}};
  add_times(j, row.base, row.times);
  return j;
}

}  // namespace

int bench_conv(const BenchConvConfig& config) {
  const Plan plan = read_plan(config);
  at::set_num_threads(config.common.threads);
  // Attached to nothing: it lends torch's threads to the kernels.
  const engine::Runtime threads(engine::ModelDescription{}, PrecisionPlan{});

  std::vector<Row> rows;
  std::map<std::string, std::string> bf16_left_out;
  {
    BenchProgress progress(config.common.quiet, static_cast<int64_t>(plan.shapes.size() * plan.forms.size()),
                           config.common.rounds);
    for (const ConvShape& shape : plan.shapes) {
      for (const ConvForm* form : plan.forms) {
        for (Row& row : measure(shape, *form, plan, config.common, bf16_left_out, progress))
          rows.push_back(std::move(row));
      }
    }
  }

  std::vector<std::string> notes;
  for (const auto& [what, note] : bf16_left_out) notes.push_back(note);
  nlohmann::ordered_json report = bench_json("conv", config.common);
  for (const Row& row : rows) report["rows"].push_back(json(row));
  std::string text = bench_header(config.common);
  for (const ConvForm* form : plan.forms) text += fmt::format("{}: {}\n", form->name, form->meaning);
  publish(config.common, text + "\n" + table(rows), notes, std::move(report));
  return 0;
}

}  // namespace hpqf::app
