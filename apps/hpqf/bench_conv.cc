#include "apps/hpqf/bench_conv.h"

#include <functional>

#include "apps/hpqf/bench_conv_case.h"
#include "apps/hpqf/bench_conv_shapes.h"

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

using ConvPlan = KernelPlan<ConvShape, ConvForm>;

// The rows of one product. The base of all ratios is torch's fp32 in the layout that is faster by its median.
std::vector<KernelRow> measure(const ConvShape& shape, const ConvForm& form, const ConvPlan& plan,
                               const BenchOptions& options, Bf16LeftOut& left_out, BenchProgress& progress) {
  const BenchClock clock(options.threads);
  const std::string name = fmt::format("{} {}", to_string(shape), form.name);
  progress.begin(name);
  std::vector<ConvCase> cases;
  for (const Layout& layout : kLayouts) cases.emplace_back(shape, form.product, layout.layout);

  std::vector<KernelRow> rows;
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ConvCase& product = cases[i];
    const auto add = [&](const std::string& format, const char* implementation, std::function<at::Tensor()> run) {
      const nlohmann::ordered_json head{{"form", form.name},
                                        {"shape", to_string(shape)},
                                        {"format", format},
                                        {"implementation", implementation},
                                        {"layout", kLayouts[i].name}};
      rows.push_back(
          {name, format, implementation, kLayouts[i].name, head, product.flops() * 1e-9, product.error(run())});
      calls.emplace_back([run = std::move(run)] { run(); });
    };
    add("fp32", "torch", [&] { return product.torch_fp32(); });
    const std::string key = fmt::format("{}, {}", form.name, kLayouts[i].name);
    if (!left_out.contains(key)) {
      const double slower = times_as_long([&] { product.torch_fp32(); }, [&] { product.torch_bf16(); }, clock);
      if (slower > kSlowestBf16) {
        left_out.add(key, to_string(shape), slower);
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

constexpr KernelBench<ConvShape, ConvForm> kBench{
    "conv", {"images x in x size x out", "layout"}, parse_conv_shape, model_conv_shapes, find_conv_form, measure};

}  // namespace

int bench_conv(const BenchKernelConfig& config) { return run_kernel_bench(kBench, config); }

}  // namespace hpqf::app
