#include "hpqf/engine/rnn_saved.h"

#include "hpqf/engine/integer_products.h"

namespace hpqf::engine {

const char* op_name(Cell cell) {
  switch (cell) {
    case Cell::lstm:
      return "lstm";
    case Cell::gru:
      return "gru";
    case Cell::rnn_tanh:
      return "rnn_tanh";
    case Cell::rnn_relu:
      return "rnn_relu";
  }
  return "";
}

void StepRounder::operator()(const float* in, float* out, int64_t rows, int64_t columns) {
  stats_ += kernels::quantize_dequantize(in, out, {rows, columns, 1}, format_);
  elements_ += rows * columns;
}

void StepRounder::report() const {
  const auto& events = layer_.runtime->events;
  if (events && (stats_.nonfinite_in || stats_.overflow)) {
    events->on_cast({layer_.name, role_, format_, elements_, stats_.nonfinite_in, stats_.overflow});
  }
}

bool runs_as_integers(const LayerPrecision& p, const Layer& layer) {
  return p.input == p.weight && p.dgrad == p.weight && p.wgrad == p.weight &&
         integer_gemm_serves(*layer.runtime, p.weight);
}

const LayerPrecision& RnnNode::rounding() const {
  static const LayerPrecision none;
  return integer ? none : *precision;
}

void emit_rnn_event(const Layer& layer, Cell cell, bool integer, observe::Pass pass, const BlockFormat& a,
                    const BlockFormat& b, double flops, double bytes, int64_t nanoseconds) {
  const auto& events = layer.runtime->events;
  if (!events) return;
  observe::OpEvent event;
  event.layer = layer.name;
  event.op = op_name(cell);
  event.pass = pass;
  event.requested_a = event.effective_a = a;
  event.requested_b = event.effective_b = b;
  event.implementation = integer ? "hpqf.integer" : rounds(a) || rounds(b) ? "emulated" : "torch";
  if (integer) {
    event.effective_a = unsigned_side(a);
    event.reason = integer_reason(a);
  }
  event.flops = flops;
  event.bytes = bytes;
  event.nanoseconds = nanoseconds;
  events->on_op(event);
}

}  // namespace hpqf::engine
