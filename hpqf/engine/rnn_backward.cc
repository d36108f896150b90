#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "hpqf/engine/instrument.h"
#include "hpqf/engine/integer_products.h"
#include "hpqf/engine/rnn_saved.h"
#include "hpqf/engine/rounding.h"
#include "hpqf/kernels/rnn_cell.h"

namespace hpqf::engine {
namespace {

at::Tensor running(const at::Tensor& gradient, int64_t batch, int64_t hidden, const at::TensorOptions& options) {
  return gradient.defined() ? gradient.clone(at::MemoryFormat::Contiguous) : at::zeros({batch, hidden}, options);
}

// Backward pass of one direction. The running gradients dh and dc start as those of the final states and end as those
// of h0 and c0; a sequence's rows move only in the steps it takes part in, so packed sequences need no bookkeeping.
class Backward {
 public:
  Backward(const RnnNode& node, const RnnSaved& saved, const at::Tensor& doutput, const at::Tensor& dh_n,
           const at::Tensor& dc_n, int64_t batch)
      : node_(node),
        precision_(node.rounding()),
        saved_(saved),
        total_(saved.gates.size(0)),
        hidden_(saved.w_hh.size(1)),
        gates_(saved.w_hh.size(0)),
        rounder_(precision_.dgrad, Role::output_grad, *node.layer) {
    const auto options = saved.gates.options();
    if (doutput.defined()) doutput_ = doutput.contiguous();
    dh_ = running(dh_n, batch, hidden_, options);
    if (node.cell == Cell::lstm) dc_ = running(dc_n, batch, hidden_, options);
    dgates_h_ = at::empty({total_, gates_}, options);
    dgates_x_ = node.cell == Cell::gru ? at::empty({total_, gates_}, options) : dgates_h_;
    if (node.integer) packed_hh_ = packed_dgrad(saved.w_hh);
    rounded_h_ = rounds(precision_.dgrad) ? at::empty({total_, gates_}, options) : dgates_h_;
  }

  void step(const RnnStep& s) {
    const float* const dout = doutput_.defined() ? doutput_.const_data_ptr<float>() + s.offset * hidden_ : nullptr;
    float* const dh = dh_.mutable_data_ptr<float>();
    float* const dgates = at_row(dgates_h_, s);
    const float* const gates = read_row(saved_.gates, s);
    if (node_.cell == Cell::lstm) {
      kernels::rnn_cell(kernels::LstmBackward{s.rows, hidden_, gates, read_row(saved_.c_before, s), dout, dh,
                                              dc_.mutable_data_ptr<float>(), dgates});
    } else if (node_.cell == Cell::gru) {
      kernels::rnn_cell(kernels::GruBackward{s.rows, hidden_, gates, read_row(saved_.hn, s),
                                             read_row(saved_.h_before, s), dout, dh, at_row(dgates_x_, s), dgates});
    } else {
      kernels::rnn_cell(kernels::RnnBackward{s.rows, hidden_, node_.cell == Cell::rnn_relu, gates, dout, dh, dgates});
    }
    if (rounds(precision_.dgrad)) rounder_(dgates, at_row(rounded_h_, s), s.rows, gates_);
    at::Tensor running_dh = dh_.narrow(0, 0, s.rows);
    const at::Tensor operand = rounded_h_.narrow(0, s.offset, s.rows);
    if (node_.integer) {
      integer_product(operand, packed_hh_, running_dh, node_.cell == Cell::gru);
    } else if (node_.cell == Cell::gru) {
      at::addmm_out(running_dh, running_dh, operand, saved_.w_hh);  // dh holds the part that passed the update gate
    } else {
      at::mm_out(running_dh, operand, saved_.w_hh);
    }
  }

  at::Tensor dx() {
    if (node_.integer) {
      at::Tensor dx = at::empty({total_, saved_.w_ih.size(1)}, dgates_x_.options());
      integer_product(dgates_x_, packed_dgrad(saved_.w_ih), dx, false);
      return dx;
    }
    if (node_.cell != Cell::gru && per_row(precision_.dgrad)) return at::mm(rounded_h_, saved_.w_ih);
    return at::mm(round(dgates_x_, precision_.dgrad, 1, *node_.layer, Role::output_grad), saved_.w_ih);
  }

  void weight_gradients(const RnnNeeds& needs, RnnGradients& g) {
    if (needs.b_ih) g.b_ih = at::sum(dgates_x_, 0);
    if (needs.b_hh) g.b_hh = needs.b_ih && node_.cell != Cell::gru ? g.b_ih.clone() : at::sum(dgates_h_, 0);
    at::Tensor dg;
    if (needs.w_hh || (needs.w_ih && node_.cell != Cell::gru)) dg = wgrad_operand(dgates_h_);
    if (needs.w_hh) g.w_hh = weight_gradient(dg, saved_.h);
    if (needs.w_ih && node_.cell == Cell::gru) dg = wgrad_operand(dgates_x_);
    if (needs.w_ih) g.w_ih = weight_gradient(dg, saved_.x);
  }

  void report() const { rounder_.report(); }
  at::Tensor dh0() const { return dh_; }
  at::Tensor dc0() const { return dc_; }

 private:
  at::Tensor packed_dgrad(const at::Tensor& w) const {
    return packed_weight(w.t(), CopyUse::packed_dgrad, node_.precision->weight, *node_.layer);
  }
  void integer_product(const at::Tensor& g, const at::Tensor& packed, at::Tensor& out, bool accumulate) const {
    integer_input_gradient(g, packed, out.size(1), node_.precision->dgrad,
                           {out.mutable_data_ptr<float>(), out.stride(0), accumulate}, *node_.layer);
  }
  at::Tensor weight_gradient(const at::Tensor& dgates, const at::Tensor& operand) const {
    if (node_.integer) return integer_weight_gradient(dgates, operand, node_.precision->wgrad, *node_.layer);
    return at::mm(dgates.t(), operand);
  }

  static float* at_row(const at::Tensor& t, const RnnStep& s) {
    return t.mutable_data_ptr<float>() + s.offset * t.size(1);
  }
  static const float* read_row(const at::Tensor& t, const RnnStep& s) {
    return t.const_data_ptr<float>() + s.offset * t.size(1);
  }

  // Rows are rounded on their own, so that rounding step by step gives the numbers of rounding all steps at once.
  static bool per_row(const BlockFormat& format) { return format.shape != formats::BlockShape::tensor; }

  // Blocks of wgrad run along the contraction: over time steps and batch. Without blocks an element's rounding does not
  // depend on its neighbours and the copy made for dgrad serves again.
  at::Tensor wgrad_operand(const at::Tensor& dgates) const {
    const BlockFormat& format = precision_.wgrad;
    const bool same = rounds(format) && format == precision_.dgrad && format.shape == formats::BlockShape::none;
    if (same && dgates.is_same(dgates_h_)) return rounded_h_;
    return round(dgates, format, 0, *node_.layer, Role::output_grad);
  }

  const RnnNode& node_;
  const LayerPrecision& precision_;  // of operands before the products
  const RnnSaved& saved_;
  const int64_t total_, hidden_, gates_;
  StepRounder rounder_;
  at::Tensor doutput_, dh_, dc_;
  at::Tensor dgates_h_, dgates_x_;  // one tensor but for gru, whose n gate sees x and h through different factors
  at::Tensor rounded_h_, packed_hh_;
};

}  // namespace

RnnGradients rnn_backward(const RnnNode& node, const RnnSaved& saved, const at::Tensor& doutput, const at::Tensor& dh_n,
                          const at::Tensor& dc_n, int64_t batch, const RnnNeeds& needs) {
  const auto start = now_ns();
  Backward backward(node, saved, doutput, dh_n, dc_n, batch);
  for (auto step = node.steps.rbegin(); step != node.steps.rend(); ++step) {
    if (step->rows > 0) backward.step(*step);
  }
  backward.report();
  RnnGradients g;
  if (needs.x) g.x = backward.dx();
  g.h0 = backward.dh0();
  g.c0 = backward.dc0();
  const auto middle = now_ns();
  backward.weight_gradients(needs, g);

  const LayerPrecision& p = *node.precision;
  const double rows = saved.gates.size(0), gates = saved.w_hh.size(0), inputs = saved.w_ih.size(1),
               hidden = saved.w_hh.size(1);
  const double d_columns = hidden + (needs.x ? inputs : 0);
  const double w_columns = (needs.w_hh ? hidden : 0) + (needs.w_ih ? inputs : 0);
  const auto size = [&](double columns) { return sizeof(float) * (rows * gates + gates * columns + rows * columns); };
  emit_rnn_event(*node.layer, node.cell, node.integer, observe::Pass::dgrad, p.dgrad,
                 rounds(p.dgrad) ? p.weight : p.dgrad, 2 * rows * gates * d_columns, size(d_columns), middle - start);
  if (w_columns > 0) {
    emit_rnn_event(*node.layer, node.cell, node.integer, observe::Pass::wgrad, p.wgrad,
                   rounds(p.wgrad) ? p.input : p.wgrad, 2 * rows * gates * w_columns, size(w_columns),
                   now_ns() - middle);
  }
  return g;
}

}  // namespace hpqf::engine
