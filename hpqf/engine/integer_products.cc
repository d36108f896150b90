#include "hpqf/engine/integer_products.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include "hpqf/engine/rounding.h"
#include "hpqf/kernels/gemm/integer_gemm.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using kernels::MatrixView;

const kernels::GemmPath& path() { return *kernels::best_gemm_path(); }

// [rows, k] with one axis dense.
struct Operand {
  Tensor held;
  MatrixView view;
};
Operand operand(const Tensor& t) {
  const int64_t rows = t.size(0), k = t.size(1);
  const float* data = t.const_data_ptr<float>();
  if (t.numel() == 0) return {t, {data, rows, k, std::max(rows, k)}};  // its strides say nothing
  if ((t.stride(1) == 1 || k == 1) && (t.stride(0) >= k || rows == 1))
    return {t, {data, rows, k, std::max(t.stride(0), k), false}};
  if ((t.stride(0) == 1 || rows == 1) && (t.stride(1) >= rows || k == 1))
    return {t, {data, rows, k, std::max(t.stride(1), rows), true}};
  return operand(t.contiguous());
}

std::string reason_of(const BlockFormat& f) {
  const BlockFormat a = unsigned_side(f);
  if (a == f) return path().name;
  return fmt::format("{}: {} x {}, for sums of {} products would leave the 16 bits they are added in", path().name,
                     formats::name(a.format), formats::name(f.format), formats::name(f.format));
}

}  // namespace

kernels::GemmBlocks blocks_of(const BlockFormat& f) {
  return {f.format == Format::int12 ? kernels::Grid::int12 : kernels::Grid::int8, f.block};
}

// 64 elements from the beginning, the middle and the end.
uint64_t gradient_seed(const Tensor& g, const Layer& layer, uint64_t product) {
  const int64_t n = g.numel(), part = std::min<int64_t>(n, 64);
  uint64_t seed = std::hash<std::string>()(layer.name) ^ uint64_t(n) << 32;
  if (!g.is_non_overlapping_and_dense()) return seed + product;
  for (int64_t first : {int64_t(0), (n - part) / 2, n - part})
    seed = (seed ^ kernels::fingerprint(g.const_data_ptr<float>() + first, part * 4)) * 0x9E3779B97F4A7C15ull;
  return seed + product;
}

// Counting elements costs a pass, so it waits until a block was seen to be bad.
void report_bad_blocks(int64_t bad_blocks, const Tensor& t, const BlockFormat& format, const Layer& layer,
                       plan::Role role) {
  if (bad_blocks == 0) return;
  report_cast(layer, role, format, t.numel(), t.numel() - at::isfinite(t).sum().item<int64_t>(), 0);
}

std::string integer_refusal(const BlockFormat& f) {
  if (!kernels::best_gemm_path()) return "cpu has neither avx2 nor avx512_vnni";
  if (f.shape != formats::BlockShape::vector || f.scale != formats::ScaleType::fp32)
    return "needs fp32 scales in blocks along the contraction: int8[1x64]";
  if (f.block != 32 && f.block != 64 && f.block != 128 && f.block != 256)
    return fmt::format("blocks of {}; 32, 64, 128 and 256 are built", f.block);
  return "";
}

BlockFormat unsigned_side(BlockFormat f) {
  if (f.format == Format::int8) f.format = path().a_format;
  return f;
}

bool integer_gemm_serves(const RuntimeState& runtime, const BlockFormat& f) {
  return (runtime.force.empty() || runtime.force == "hpqf.integer") &&
         (f.format == Format::int8 || f.format == Format::int12) && integer_refusal(f).empty();
}

std::string_view integer_reason(const BlockFormat& f) {
  static const std::string int8 = reason_of({.format = Format::int8}), int12 = reason_of({.format = Format::int12});
  return f.format == Format::int12 ? int12 : int8;
}

Tensor packed_weight(const Tensor& w, CopyUse use, const BlockFormat& format, const Layer& layer) {
  auto make = [&] {
    const Operand b = operand(w);
    const int64_t bytes = kernels::packed_bytes(b.view.rows, b.view.k, blocks_of(format));
    Tensor packed = at::empty({std::max<int64_t>(64, bytes)}, at::kByte);  // torch aligns to 64 bytes
    report_bad_blocks(kernels::pack_b(path(), b.view, blocks_of(format), {}, packed.data_ptr()), w, format, layer,
                      plan::Role::weight);
    return packed;
  };
  return cacheable(w) ? weight_copy(w, use, format, 1, make) : make();
}

void integer_forward(const Tensor& x, const Tensor& packed, int64_t n, const BlockFormat& format,
                     const IntegerOutput& out, const Layer& layer) {
  const Operand a = operand(x);
  const int64_t bad = kernels::gemm(path(), a.view, {}, packed.const_data_ptr(), n, blocks_of(format),
                                    {out.data, out.stride, out.accumulate, out.bias});
  report_bad_blocks(bad, x, unsigned_side(format), layer, plan::Role::input);
}

void integer_input_gradient(const Tensor& g, const Tensor& packed, int64_t k, const BlockFormat& format,
                            const IntegerOutput& out, const Layer& layer) {
  const Operand a = operand(g);
  const int64_t bad =
      kernels::gemm(path(), a.view, {Rounding::stochastic, gradient_seed(g, layer, 1)}, packed.const_data_ptr(), k,
                    blocks_of(format), {out.data, out.stride, out.accumulate});
  report_bad_blocks(bad, g, unsigned_side(format), layer, plan::Role::output_grad);
}

Tensor integer_weight_gradient(const Tensor& g, const Tensor& x, const BlockFormat& format, const Layer& layer) {
  const int64_t n = g.size(1), k = x.size(1);
  Tensor dw = at::empty({n, k}, g.options());
  const Operand a = operand(g.t()), b = operand(x.t());
  // What is bad in x was reported by the forward pass; what is bad in g shows in dw and, with dgrad, in its report.
  kernels::gemm(path(), a.view, {Rounding::stochastic, gradient_seed(g, layer, 2)}, b.view, {}, blocks_of(format),
                {dw.mutable_data_ptr<float>(), k});
  return dw;
}

}  // namespace hpqf::engine
