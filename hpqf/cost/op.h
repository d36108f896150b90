// What one sample of training costs, op by op, as pure functions of shapes.
//
// FLOPs are those of the matrix products, 2 for each multiply-add (2MNK). Additions of a bias, norms, activations and
// the optimizer count as memory traffic only: they are bound by it on every device.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/role.h"

namespace hpqf::cost {

// C[m, n] = A[m, k] B[k, n], `count` times.
struct Gemm {
  double m = 0, n = 0, k = 0, count = 1;
  double flops() const { return 2 * m * n * k * count; }
};

// The three products of y[rows, out] = x[rows, in] W^T: all have the same FLOPs.
struct LinearGemms {
  Gemm forward, dgrad, wgrad;
};
HPQF_API LinearGemms linear_gemms(double rows, double in, double out);

struct Op {
  std::string layer;  // qualified name, as a plan sees it
  std::string op;     // "linear", "conv2d", "attention", "lstm", "embedding", "norm", ...
  plan::LayerKind kind = plan::LayerKind::other;

  // GEMM FLOPs per sample in the forward pass; each backward product costs as many. 0: no GEMM.
  double flops = 0;
  bool dgrad = true, wgrad = true;  // which backward products there are

  // Elements. `weight` is the GEMM operand that is a parameter: read once a pass, whatever the batch. The others are
  // per sample: first operand, second operand when it is an activation, result.
  double weight = 0;
  double a = 0, b = 0, y = 0;

  double parameters = 0;             // of this op: weight, bias, scale and shift
  double saved = 0;                  // elements per sample kept for the backward pass
  double forward = 0, backward = 0;  // elements per sample read and written by ops without a GEMM
  double launches = 1;               // kernels one pass starts
};

HPQF_API Op linear(std::string layer, double rows, double in, double out, bool bias = true);

struct Conv2d {
  double in_channels = 0, out_channels = 0, kernel = 1;
  double in_size = 0, out_size = 0;  // height = width
  double groups = 1;
  bool bias = false;
};
HPQF_API Op conv2d(std::string layer, const Conv2d& shape);

// How the products of causal attention are counted: every pair of positions, as counters of dispatched ops do and as
// unfused kernels compute them, or only the pairs that the mask leaves, T (T + 1) / 2.
enum class Causal : uint8_t { none, counted_full, counted_exact };
struct Attention {
  double heads = 0, queries = 0, keys = 0, dim = 0;  // dim: of one head
  Causal causal = Causal::none;
  bool fused = true;  // the probabilities [heads, queries, keys] never reach memory
};
// Both products, Q K^T and P V. Backward has four, so twice the forward FLOPs; what a fused kernel computes a second
// time is not counted.
HPQF_API double attention_flops(const Attention& shape);
HPQF_API Op attention(std::string layer, const Attention& shape);

struct Rnn {
  double gates = 4;  // LSTM 4, GRU 3, plain 1
  double inputs = 0, hidden = 0, steps = 0, directions = 1;
};
HPQF_API Op rnn(std::string layer, const Rnn& shape);  // one layer of it

HPQF_API Op embedding(std::string layer, double tokens, double rows, double width);
// Over `elements` per sample, with a scale and a shift for each of `features`. Two readings forward (statistics, then
// the values), as with batch statistics.
HPQF_API Op norm(std::string layer, double elements, double features);
HPQF_API Op elementwise(std::string layer, std::string op, double elements, double operands = 1, double saved = 1);
HPQF_API Op pool(std::string layer, double in_elements, double out_elements);
HPQF_API Op cross_entropy(double rows, double classes);

}  // namespace hpqf::cost
