#include "hpqf/cost/op.h"

#include <utility>

namespace hpqf::cost {

using plan::LayerKind;

LinearGemms linear_gemms(double rows, double in, double out) {
  return {{rows, out, in}, {rows, in, out}, {out, in, rows}};
}

Op linear(std::string layer, double rows, double in, double out, bool bias) {
  Op op{.layer = std::move(layer), .op = "linear", .kind = LayerKind::linear};
  op.flops = linear_gemms(rows, in, out).forward.flops();
  op.weight = in * out;
  op.parameters = op.weight + (bias ? out : 0);
  op.a = op.saved = rows * in;
  op.y = rows * out;
  return op;
}

Op conv2d(std::string layer, const Conv2d& s) {
  Op op{.layer = std::move(layer), .op = "conv2d", .kind = LayerKind::conv};
  op.weight = s.out_channels * s.in_channels / s.groups * s.kernel * s.kernel;
  op.parameters = op.weight + (s.bias ? s.out_channels : 0);
  op.flops = 2 * op.weight * s.out_size * s.out_size;  // every weight meets every output pixel once
  op.a = op.saved = s.in_channels * s.in_size * s.in_size;
  op.y = s.out_channels * s.out_size * s.out_size;
  return op;
}

double attention_flops(const Attention& s) {
  const double pairs = s.causal == Causal::counted_exact ? s.queries * (s.queries + 1) / 2 : s.queries * s.keys;
  return 2 * Gemm{pairs, 1, s.dim, s.heads}.flops();
}

Op attention(std::string layer, const Attention& s) {
  Op op{.layer = std::move(layer), .op = "attention", .kind = LayerKind::attention};
  op.flops = attention_flops(s);
  op.a = op.y = s.heads * s.queries * s.dim;
  op.b = 2 * s.heads * s.keys * s.dim;  // keys and values
  op.saved = op.a + op.b + op.y;
  if (!s.fused) {
    // Scores are written and read, probabilities written and read; backward the same for their gradients.
    const double probabilities = s.heads * s.queries * s.keys;
    op.forward = op.backward = 4 * probabilities;
    op.saved += probabilities;
    op.launches = 3;
  }
  return op;
}

Op rnn(std::string layer, const Rnn& s) {
  Op op{.layer = std::move(layer), .op = "rnn", .kind = LayerKind::rnn};
  const double rows = s.gates * s.hidden * s.directions;
  op.weight = rows * (s.inputs + s.hidden);
  op.parameters = op.weight + 2 * rows;  // torch keeps one bias for the input and one for the state
  op.flops = 2 * op.weight * s.steps;
  op.a = s.steps * (s.inputs + s.hidden * s.directions);
  op.y = s.steps * rows;
  op.saved = s.steps * (s.inputs + s.directions * s.hidden * (s.gates + 2));  // inputs, gates, state, output
  op.forward = op.backward = s.steps * s.directions * s.hidden * (s.gates + 4);
  op.launches = 2 * s.steps;  // a product and a cell for each step
  return op;
}

Op embedding(std::string layer, double tokens, double rows, double width) {
  Op op{.layer = std::move(layer), .op = "embedding", .kind = LayerKind::embedding};
  op.parameters = rows * width;
  op.saved = tokens;
  op.forward = op.backward = 2 * tokens * width;
  return op;
}

Op norm(std::string layer, double elements, double features) {
  Op op{.layer = std::move(layer), .op = "norm", .kind = LayerKind::norm};
  op.parameters = 2 * features;
  op.saved = elements;
  op.forward = 3 * elements;   // read twice, written once
  op.backward = 5 * elements;  // gradient and input read twice, gradient written
  return op;
}

Op elementwise(std::string layer, std::string name, double elements, double operands, double saved) {
  Op op{.layer = std::move(layer), .op = std::move(name), .kind = LayerKind::activation};
  op.saved = saved * elements;
  op.forward = (operands + 1) * elements;
  op.backward = (saved + 2) * elements;
  return op;
}

Op pool(std::string layer, double in_elements, double out_elements) {
  Op op{.layer = std::move(layer), .op = "pool", .kind = LayerKind::other};
  op.saved = out_elements;  // indices
  op.forward = op.backward = in_elements + out_elements;
  return op;
}

Op cross_entropy(double rows, double classes) {
  Op op{.layer = "", .op = "cross_entropy", .kind = LayerKind::loss};
  op.saved = rows * classes;
  op.forward = 2 * rows * classes;
  op.backward = 2 * rows * classes;
  return op;
}

}  // namespace hpqf::cost
