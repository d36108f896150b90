// One direction of one recurrent layer: a single autograd node over all time steps.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <vector>

#include "hpqf/engine/layer.h"
#include "hpqf/engine/rnn.h"

namespace hpqf::engine {

inline bool rounds(const BlockFormat& format) { return format.format != Format::fp32; }
inline int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
// The products run as integers: all four formats of the GEMM are one that the integer GEMM takes.
bool runs_as_integers(const LayerPrecision& precision, const Layer& layer);
const char* op_name(Cell cell);  // "lstm", "gru", "rnn_tanh", "rnn_relu"

// Rows [offset, offset + rows) of the packed sequence: the batch at one time step. Padded sequences are packed ones
// whose steps all have the same number of rows.
struct RnnStep {
  int64_t offset = 0, rows = 0;
};

// What the node needs besides tensors. Shared by forward and backward, never changed after forward began.
struct RnnNode : torch::CustomClassHolder {
  Cell cell = Cell::lstm;
  LayerRef layer;
  const LayerPrecision* precision = nullptr;  // that of the forward pass, also for backward; kept alive by `layer`
  bool integer = false;  // the products run on the integer GEMM, from operands as they are; else on rounded ones
  const LayerPrecision& rounding() const;  // what operands are rounded to before the products: nothing when `integer`
  std::vector<RnnStep> steps;              // in the order of processing: last time step first in the reverse direction
};

struct RnnWeights {
  at::Tensor w_ih, w_hh;                 // [gates * H, I], [gates * H, H]
  std::optional<at::Tensor> b_ih, b_hh;  // [gates * H]
};

struct RnnLayerResult {
  at::Tensor output, h_n, c_n;  // [..., H] like x; [B, H]; c_n only for lstm
};

// x: [T, B, I] or [sum, I]; x_rounded: [sum, I], x as the GEMM sees it, made once for both directions. c0 only for
// lstm.
RnnLayerResult run_rnn_layer(const c10::intrusive_ptr<RnnNode>& node, const at::Tensor& x, const at::Tensor& x_rounded,
                             const at::Tensor& h0, const std::optional<at::Tensor>& c0, const RnnWeights& weights);

}  // namespace hpqf::engine
