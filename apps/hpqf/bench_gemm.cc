#include "apps/hpqf/bench_gemm.h"

#include <functional>

#include "apps/hpqf/bench_gemm_case.h"
#include "apps/hpqf/bench_shapes.h"

namespace hpqf::app {
namespace {

using GemmPlan = KernelPlan<LinearShape, GemmForm>;

struct Variant {
  std::string format, implementation;
  bool packed = false;
  std::function<const at::Tensor&()> run;
};

std::vector<Variant> variants(GemmCase& product, const GemmForm& form, const GemmPlan& plan, bool bf16) {
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

std::vector<KernelRow> measure(const LinearShape& shape, const GemmForm& form, const GemmPlan& plan,
                               const BenchOptions& options, Bf16LeftOut& left_out, BenchProgress& progress) {
  const BenchClock clock(options.threads);
  GemmCase product(shape, form);
  const std::string name = fmt::format("{} {}", to_string(shape), form.name);
  progress.begin(name);
  if (!left_out.contains(form.name)) {
    const double slower = times_as_long([&] { product.torch_fp32(); }, [&] { product.torch_bf16(); }, clock);
    if (slower > kSlowestBf16) left_out.add(form.name, to_string(shape), slower);
  }
  std::vector<KernelRow> rows;
  std::vector<std::function<void()>> calls;
  for (const Variant& v : variants(product, form, plan, !left_out.contains(form.name))) {
    const nlohmann::ordered_json head{{"form", form.name}, {"m", shape.m},       {"k", shape.k},
                                      {"n", shape.n},      {"format", v.format}, {"implementation", v.implementation},
                                      {"packed", v.packed}};
    rows.push_back({name, v.format, v.implementation, v.packed ? "packed once" : "", head, product.flops() * 1e-9,
                    product.error(v.run())});
    calls.emplace_back(v.run);
  }
  const RoundTimes times = interleave(calls, options.rounds, clock, [&](int64_t done) { progress.round(done); });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].times = times[i], rows[i].base = times[0];
  return rows;
}

constexpr KernelBench<LinearShape, GemmForm> kBench{
    "gemm", {"rows x in x out", "weight"}, parse_shape, model_shapes, find_gemm_form, measure};

}  // namespace

int bench_gemm(const BenchKernelConfig& config) { return run_kernel_bench(kBench, config); }

}  // namespace hpqf::app
