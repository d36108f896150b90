// Kernels of embedding and embedding_bag.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/SequenceNumber.h>
#include <ATen/ops/embedding_bag_ops.h>
#include <ATen/ops/embedding_ops.h>

#include "hpqf/engine/identity.h"
#include "hpqf/engine/ops.h"
#include "hpqf/engine/probe.h"
#include "hpqf/engine/rounding.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // the sums, and what the backward needs

Tensor& result_of(Tensor& y) { return y; }
Tensor& result_of(Bags& y) { return std::get<0>(y); }

// Rows of the rounded table. The gradient is a sum of fp32 rows: nothing to round there. `linear`: the result is linear
// in the table, so that the effect of an error of the table can be computed alone.
template <class OP, class... A>
auto run_lookup(bool linear, const Tensor& weight, const A&... arguments) {
  OwnKeyOff off;
  Layer* layer = find_layer(weight, Use::lookup);
  if (!layer) return OP::call(weight, arguments...);
  AllAutocastOff all;
  const std::string_view why = untouchable(weight, weight);
  if (Probe* probe = layer->runtime->probe; probe && why.empty() && linear) {
    ProbedOp op{.op = OP::name + 6, .weight = weight.detach(), .weight_axis = -1};
    op.weight_product = [copies = std::make_tuple(arguments...)](const Tensor& w) -> Tensor {
      return std::apply(
          [&](const auto&... same) {
            auto y = OP::call(w, same...);
            return result_of(y);
          },
          copies);
    };
    auto seen = OP::call(weight, arguments...);
    result_of(seen) = probe->on_op(*layer, op, result_of(seen));
    return seen;
  }
  const BlockFormat planned = layer->precision().weight;
  const BlockFormat format = why.empty() ? planned : BlockFormat{};
  OpRecord r{.op = OP::name + 6,
             .requested_a = {},
             .requested_b = planned,
             .b = format,
             .implementation = format.format == Format::fp32 ? "torch" : "emulated",
             .reason = why,
             .is_gemm = false};
  check_strict(*layer, r, format.format == Format::fp32);
  const uint64_t sequence = at::sequence_number::peek();
  const int64_t start = now_ns();
  auto result = OP::call(round_weight(weight, format, -1, ref(layer)), arguments...);
  emit_forward(*layer, r, now_ns() - start);
  const Tensor& y = result_of(result);
  if (y.requires_grad()) follow_backward(y, sequence, ref(layer), r, {}, -1, false, true);
  return result;
}

Tensor run_embedding(const Tensor& weight, const Tensor& indices, c10::SymInt padding, bool scale_by_freq,
                     bool sparse) {
  return run_lookup<at::_ops::embedding>(true, weight, indices, padding, scale_by_freq, sparse);
}

constexpr int64_t kMax = 2;  // the mode of embedding_bag that is not linear

Bags run_embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_by_freq,
                       int64_t mode, bool sparse, const OptTensor& per_sample_weights, bool include_last_offset) {
  return run_lookup<at::_ops::embedding_bag>(mode != kMax, weight, indices, offsets, scale_by_freq, mode, sparse,
                                             per_sample_weights, include_last_offset);
}

Bags run_embedding_bag_padded(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_by_freq,
                              int64_t mode, bool sparse, const OptTensor& per_sample_weights, bool include_last_offset,
                              std::optional<int64_t> padding) {
  return run_lookup<at::_ops::embedding_bag_padding_idx>(mode != kMax, weight, indices, offsets, scale_by_freq, mode,
                                                         sparse, per_sample_weights, include_last_offset, padding);
}

}  // namespace

void register_lookup_ops(torch::Library& aten) {
  intercept<at::_ops::embedding>(aten, run_embedding);
  intercept<at::_ops::embedding_bag>(aten, run_embedding_bag);
  intercept<at::_ops::embedding_bag_padding_idx>(aten, run_embedding_bag_padded);
}

}  // namespace hpqf::engine
