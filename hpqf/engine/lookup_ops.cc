// Kernels of embedding and embedding_bag.
#include "hpqf/engine/gemm.h"  // first: the _ops.h headers lean on ATen/core/Tensor.h

#include <ATen/SequenceNumber.h>
#include <ATen/ops/embedding_bag_ops.h>
#include <ATen/ops/embedding_ops.h>

#include "hpqf/engine/identity.h"
#include "hpqf/engine/ops.h"
#include "hpqf/engine/rounding.h"

namespace hpqf::engine {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

const Tensor& result_of(const Tensor& y) { return y; }
const Tensor& result_of(const std::tuple<Tensor, Tensor, Tensor, Tensor>& y) { return std::get<0>(y); }

// Rows of the rounded table. The gradient is a sum of fp32 rows: nothing to round there.
template <class OP, class... A>
auto run_lookup(const Tensor& weight, const A&... arguments) {
  OwnKeyOff off;
  Layer* layer = find_layer(weight, Use::lookup);
  if (!layer) return OP::call(weight, arguments...);
  AllAutocastOff all;
  const std::string_view why = untouchable(weight, weight);
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
  return run_lookup<at::_ops::embedding>(weight, indices, padding, scale_by_freq, sparse);
}

using Bags = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // the sums, and what the backward needs

Bags run_embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_by_freq,
                       int64_t mode, bool sparse, const OptTensor& per_sample_weights, bool include_last_offset) {
  return run_lookup<at::_ops::embedding_bag>(weight, indices, offsets, scale_by_freq, mode, sparse, per_sample_weights,
                                             include_last_offset);
}

Bags run_embedding_bag_padded(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_by_freq,
                              int64_t mode, bool sparse, const OptTensor& per_sample_weights, bool include_last_offset,
                              std::optional<int64_t> padding) {
  return run_lookup<at::_ops::embedding_bag_padding_idx>(weight, indices, offsets, scale_by_freq, mode, sparse,
                                                         per_sample_weights, include_last_offset, padding);
}

}  // namespace

void register_lookup_ops(torch::Library& aten) {
  intercept<at::_ops::embedding>(aten, run_embedding);
  intercept<at::_ops::embedding_bag>(aten, run_embedding_bag);
  intercept<at::_ops::embedding_bag_padding_idx>(aten, run_embedding_bag_padded);
}

}  // namespace hpqf::engine
