// The two passes of the recurrent autograd node, and what one hands to the other.
#pragma once
#include "hpqf/engine/rnn_layer.h"
#include "hpqf/kernels/quantize.h"

namespace hpqf::engine {

// Per time step arrays are [sum, k], rows in sequence order. Undefined where the cell or the plan does not need them.
struct RnnSaved {
  at::Tensor x, h;          // the wgrad operands: rounded as in forward, or not at all when wgrad is fp32
  at::Tensor w_ih, w_hh;    // the dgrad operands: likewise
  at::Tensor gates;         // after activation; rnn: the output itself
  at::Tensor c_before;      // lstm: cell state before the step
  at::Tensor h_before, hn;  // gru: hidden state before the step, unrounded; h W_hn + b_hn
};

struct RnnForwardResult {
  at::Tensor output, h_n, c_n;
  RnnSaved saved;
};
RnnForwardResult rnn_forward(const RnnNode& node, const at::Tensor& x, const at::Tensor& x_rounded,
                             const at::Tensor& h0, const std::optional<at::Tensor>& c0, const RnnWeights& weights);

struct RnnNeeds {
  bool x = false, w_ih = false, w_hh = false, b_ih = false, b_hh = false;
};
struct RnnGradients {
  at::Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh;  // x: [sum, I]; undefined when not needed
};
// doutput [sum, H], dh_n and dc_n [B, H] may be undefined: zero.
RnnGradients rnn_backward(const RnnNode& node, const RnnSaved& saved, const at::Tensor& doutput, const at::Tensor& dh_n,
                          const at::Tensor& dc_n, int64_t batch, const RnnNeeds& needs);

// Rounds the rows of one time step after another and reports all of them as one cast.
class StepRounder {
 public:
  StepRounder(const BlockFormat& format, plan::Role role, const Layer& layer)
      : format_(format), role_(role), layer_(layer) {}
  void operator()(const float* in, float* out, int64_t rows, int64_t columns);
  void report() const;

 private:
  BlockFormat format_;
  plan::Role role_;
  const Layer& layer_;
  int64_t elements_ = 0;
  kernels::RoundStats stats_;
};

// One event of the layer. a and b are the formats of the operands, the first of which is the unsigned one of integers.
void emit_rnn_event(const Layer& layer, Cell cell, bool integer, observe::Pass pass, const BlockFormat& a,
                    const BlockFormat& b, double flops, double bytes, int64_t nanoseconds);

}  // namespace hpqf::engine
