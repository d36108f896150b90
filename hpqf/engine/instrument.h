// What follows an op into its backward: hooks on the autograd nodes it made, which round the output gradient as planned
// and report what the backward GEMMs did.
#pragma once
#include <ATen/SequenceNumber.h>
#include <ATen/core/Tensor.h>

#include <chrono>
#include <string_view>

#include "hpqf/engine/layer.h"

namespace hpqf::engine {

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What one op is, for its events. FLOPs are those of one GEMM pass; dgrad and wgrad each cost the same.
struct OpRecord {
  std::string_view op;
  BlockFormat requested_a, requested_b, requested_dgrad, requested_wgrad;  // as planned
  BlockFormat a, b, dgrad, wgrad;                                          // as run
  std::string_view implementation;
  std::string_view reason;  // lives as long as the layer's runtime (RuntimeState::intern)
  double flops = 0;
  double bytes = 0;
  bool is_gemm = true;
};

void emit_forward(const Layer& layer, const OpRecord& record, int64_t nanoseconds);
void emit_backward(const Layer& layer, const OpRecord& record, bool dgrad, bool wgrad, int64_t nanoseconds,
                   double share = 1);

// `y` came out of an op whose autograd nodes carry sequence numbers >= first_sequence (at::sequence_number::peek()
// before the op). Rounds the gradient that enters to `grad_format` along `axis` (fp32: leaves it), times the GEMM nodes
// and emits one backward event each. Nothing happens when y needs no gradient.
void follow_backward(const at::Tensor& y, uint64_t first_sequence, const LayerRef& layer, const OpRecord& record,
                     const BlockFormat& grad_format, int64_t axis, bool needs_a, bool needs_b);

}  // namespace hpqf::engine
