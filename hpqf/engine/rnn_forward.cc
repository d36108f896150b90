#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <cstring>

#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/rnn_saved.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/kernels/rnn_cell.h"

namespace hpqf::engine {
namespace {

void copy_rows(float* to, const float* from, int64_t rows, int64_t columns) {
  if (rows > 0) std::memcpy(to, from, sizeof(float) * rows * columns);
}

// Forward pass of one direction. The running states h_n and c_n hold, for each sequence, its last state so far: at the
// end they are the final states, and in the reverse direction sequences that have not begun yet still hold h0 and c0.
class Forward {
 public:
  Forward(const RnnNode& node, const at::Tensor& h0, const std::optional<at::Tensor>& c0, const RnnWeights& weights,
          int64_t total)
      : node_(node),
        precision_(node.rounding()),
        hidden_(h0.size(1)),
        gates_(gates_of(node.cell) * hidden_),
        rounder_(precision_.input, Role::input, *node.layer) {
    w_hh_ = round_weight(weights.w_hh, precision_.weight, 1, node.layer);
    w_hh_t_ = w_hh_.t();
    if (node.integer) packed_hh_ = packed_weight(weights.w_hh, CopyUse::packed, node.precision->weight, *node.layer);
    result_.h_n = h0.clone(at::MemoryFormat::Contiguous);
    const auto options = h0.options();
    result_.output = at::empty({total, hidden_}, options);
    h_before_ = at::empty({total, hidden_}, options);
    h_operand_ = rounds(precision_.input) ? at::empty({total, hidden_}, options) : h_before_;
    if (node.cell == Cell::lstm) {
      result_.c_n = c0->clone(at::MemoryFormat::Contiguous);
      c_before_ = at::empty({total, hidden_}, options);
    }
    if (node.cell == Cell::gru) {
      hn_ = at::empty({total, hidden_}, options);
      scratch_ = at::empty({h0.size(0), gates_}, options);
      if (weights.b_hh) b_hh_ = weights.b_hh->contiguous();
    }
    pre_ = node.cell == Cell::lstm || node.cell == Cell::gru ? at::empty({total, gates_}, options) : result_.output;
  }

  // x W_ih + b_ih (+ b_hh where it is only added): one GEMM over all time steps.
  void project_inputs(const at::Tensor& x, const RnnWeights& weights) {
    const at::Tensor w_ih = round_weight(weights.w_ih, precision_.weight, 1, node_.layer);
    const std::optional<at::Tensor> bias =
        !weights.b_ih ? std::nullopt
                      : std::optional(node_.cell == Cell::gru ? weights.b_ih->contiguous()
                                                              : at::add(*weights.b_ih, *weights.b_hh));
    if (node_.integer) {
      integer_product(x, packed_weight(w_ih, CopyUse::packed, node_.precision->weight, *node_.layer), pre_, false,
                      bias);
    } else if (bias) {
      at::addmm_out(pre_, *bias, x, w_ih.t());
    } else {
      at::mm_out(pre_, x, w_ih.t());
    }
    const bool round_dgrad = rounds(precision_.dgrad);
    result_.saved.w_ih = round_dgrad ? w_ih : weights.w_ih;
    result_.saved.w_hh = round_dgrad ? w_hh_ : weights.w_hh;
  }

  void step(const RnnStep& s) {
    float* const h_n = result_.h_n.mutable_data_ptr<float>();
    float* const h_before = at_row(h_before_, s);
    copy_rows(h_before, h_n, s.rows, hidden_);
    if (rounds(precision_.input)) rounder_(h_before, at_row(h_operand_, s), s.rows, hidden_);
    const at::Tensor h = h_operand_.narrow(0, s.offset, s.rows);
    float* const output = at_row(result_.output, s);
    if (node_.cell == Cell::gru) {
      at::Tensor hidden_gates = scratch_.narrow(0, 0, s.rows);
      if (node_.integer) {
        integer_product(h, packed_hh_, hidden_gates, false, b_hh_);
      } else if (b_hh_) {
        at::addmm_out(hidden_gates, *b_hh_, h, w_hh_t_);
      } else {
        at::mm_out(hidden_gates, h, w_hh_t_);
      }
      kernels::rnn_cell(kernels::GruForward{s.rows, hidden_, at_row(pre_, s), hidden_gates.const_data_ptr<float>(),
                                            h_before, at_row(hn_, s), output});
    } else {
      at::Tensor gates = pre_.narrow(0, s.offset, s.rows);
      if (node_.integer) {
        integer_product(h, packed_hh_, gates, true, std::nullopt);
      } else {
        at::addmm_out(gates, gates, h, w_hh_t_);
      }
      if (node_.cell == Cell::lstm) {
        float* const c_n = result_.c_n.mutable_data_ptr<float>();
        float* const c_before = at_row(c_before_, s);
        copy_rows(c_before, c_n, s.rows, hidden_);
        kernels::rnn_cell(kernels::LstmForward{s.rows, hidden_, at_row(pre_, s), c_before, c_n, output});
      } else {
        kernels::rnn_cell(kernels::RnnForward{s.rows, hidden_, node_.cell == Cell::rnn_relu, output});
      }
    }
    copy_rows(h_n, output, s.rows, hidden_);
  }

  RnnForwardResult finish(const at::Tensor& x, const at::Tensor& x_rounded) {
    rounder_.report();
    RnnSaved& saved = result_.saved;
    const bool round_wgrad = rounds(precision_.wgrad);
    saved.x = round_wgrad ? x_rounded : x;
    saved.h = round_wgrad ? h_operand_ : h_before_;
    saved.gates = pre_;
    saved.c_before = c_before_;
    if (node_.cell == Cell::gru) saved.h_before = h_before_;
    saved.hn = hn_;
    return std::move(result_);
  }

 private:
  void integer_product(const at::Tensor& x, const at::Tensor& packed, at::Tensor& out, bool accumulate,
                       const std::optional<at::Tensor>& bias) const {
    integer_forward(
        x, packed, gates_, node_.precision->input,
        {out.mutable_data_ptr<float>(), out.stride(0), accumulate, bias ? bias->const_data_ptr<float>() : nullptr},
        *node_.layer);
  }

  static float* at_row(const at::Tensor& t, const RnnStep& s) {
    return t.mutable_data_ptr<float>() + s.offset * t.size(1);
  }

  const RnnNode& node_;
  const LayerPrecision& precision_;  // of operands before the products
  const int64_t hidden_, gates_;
  StepRounder rounder_;
  RnnForwardResult result_;
  at::Tensor pre_;  // pre-activations, then activations
  at::Tensor w_hh_, w_hh_t_, packed_hh_, h_before_, h_operand_, c_before_, hn_, scratch_;
  std::optional<at::Tensor> b_hh_;
};

}  // namespace

RnnForwardResult rnn_forward(const RnnNode& node, const at::Tensor& x, const at::Tensor& x_rounded,
                             const at::Tensor& h0, const std::optional<at::Tensor>& c0, const RnnWeights& weights) {
  Forward forward(node, h0, c0, weights, x_rounded.size(0));
  forward.project_inputs(x_rounded, weights);
  for (const RnnStep& step : node.steps) {
    if (step.rows > 0) forward.step(step);
  }
  return forward.finish(x, x_rounded);
}

}  // namespace hpqf::engine
