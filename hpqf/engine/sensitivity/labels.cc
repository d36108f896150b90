#include "hpqf/engine/sensitivity/labels.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include "hpqf/base/random.h"

namespace hpqf::engine::sensitivity {
namespace {

constexpr uint64_t kLabelStream = 0x6c6162656c73;  // "labels"

// Uniform in (0, 1): 52 random bits, and half a step so that neither end occurs.
double uniform(uint64_t seed, uint64_t row) {
  const base::PhiloxBlock block = base::random_block(seed, kLabelStream, row);
  const uint64_t bits = (uint64_t{block[0]} << 20) | (block[1] >> 12);
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace

std::optional<at::Tensor> class_scores(const at::Tensor& output, const at::Tensor& target) {
  if (!output.defined() || !target.defined() || !output.is_floating_point() || output.dim() < 1) return std::nullopt;
  if (!at::isIntegralType(target.scalar_type(), /*includeBool=*/false)) return std::nullopt;
  const at::IntArrayRef sizes = output.sizes(), wanted = target.sizes();
  if (output.dim() == target.dim() + 1) {
    // [B, C, ..] is how torch's losses read an output of more than two dimensions; it wins where both fit.
    if (output.dim() > 2 && sizes[0] == wanted[0] && sizes.slice(2) == wanted.slice(1))
      return at::movedim(output, 1, -1).reshape({-1, sizes[1]});
    if (sizes.slice(0, sizes.size() - 1) == wanted) return output.reshape({-1, sizes.back()});
  }
  if (output.dim() == 2 && sizes[0] == target.numel()) return output;
  return std::nullopt;
}

at::Tensor sample_labels(const at::Tensor& scores, const at::Tensor& target, uint64_t seed, uint64_t first_row) {
  at::NoGradGuard no_grad;
  const at::Tensor sums = at::cumsum(at::softmax(scores.detach().cpu().to(at::kDouble), -1), -1);
  const int64_t rows = scores.size(0), classes = scores.size(1);
  at::Tensor draws = at::empty({rows, 1}, sums.options());
  double* out = draws.mutable_data_ptr<double>();
  for (int64_t i = 0; i < rows; ++i) out[i] = uniform(seed, first_row + static_cast<uint64_t>(i));
  // The last sum may lie a rounding error below 1.
  const at::Tensor drawn = at::clamp(at::searchsorted(sums, draws).squeeze(1), 0, classes - 1);
  const at::Tensor given = target.detach().cpu().to(at::kLong).reshape({-1});
  return at::where(at::lt(given, 0), -100, drawn).to(scores.device());
}

}  // namespace hpqf::engine::sensitivity
