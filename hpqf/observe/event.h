// Plain records of what happened. Who emits them knows nothing of who listens; who listens cannot change anything.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/formats/block_format.h"
#include "hpqf/plan/role.h"

namespace hpqf::observe {

enum class Pass : uint8_t { forward, dgrad, wgrad, backward /* both, or an op without a GEMM */ };
HPQF_API const char* name(Pass pass);
HPQF_API std::optional<Pass> find_pass(std::string_view name);

// One op, or its backward, ran. Strings live as long as the runtime that emitted the event.
struct OpEvent {
  std::string_view layer;  // "" is the model itself
  std::string_view op;     // "conv2d", "linear", "softmax", ...
  Pass pass = Pass::forward;
  BlockFormat requested_a,
      requested_b;  // forward: input, weight; dgrad: output_grad, weight; wgrad: output_grad, input
  BlockFormat effective_a, effective_b;
  std::string_view implementation;  // "torch", "emulated", "torch.bf16", ...
  std::string_view reason;  // why effective != requested, or why this implementation; "" when there is nothing to say
  double flops = 0;         // GEMM FLOPs (2 per multiply-add); 0 for ops without a GEMM
  double bytes = 0;         // operands and result as stored
  int64_t nanoseconds = 0;  // wall time on the calling thread
};

// A cast of one operand. Emitted only when something was not finite or did not fit.
struct CastEvent {
  std::string_view layer;
  plan::Role role = plan::Role::input;
  BlockFormat format;
  int64_t elements = 0, nonfinite_in = 0, overflow = 0;
};

class HPQF_API EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_op(const OpEvent&) {}  // must be thread safe and cheap: called for every intercepted op
  virtual void on_cast(const CastEvent&) {}
};

}  // namespace hpqf::observe
