// Recurrent layers under a plan: the GEMM parts (x W_ih, h W_hh) follow the plan, gates and cell state stay fp32.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <tuple>

#include "hpqf/base/export.h"
#include "hpqf/engine/layer.h"

namespace hpqf::engine {

enum class Cell : uint8_t { lstm, gru, rnn_tanh, rnn_relu };

struct RnnCall {  // the arguments of aten::lstm / gru / rnn_tanh / rnn_relu
  Cell cell = Cell::lstm;
  at::Tensor input;  // [T,B,I], or [B,T,I] with batch_first, or packed data [sum, I] with batch_sizes
  std::optional<at::Tensor> batch_sizes;  // packed form (aten::*.data)
  at::TensorList state;                   // lstm: {h0, c0}; others: {h0}
  at::TensorList params;                  // flat weights as in aten
  bool has_biases = true;
  int64_t num_layers = 1;
  double dropout = 0;
  bool train = false, bidirectional = false, batch_first = false;
};

// "" when run_rnn can take the call under the layer's precision, else why not (projections, other dtypes, other
// devices...).
HPQF_API std::string rnn_refusal(const RnnCall& call, const LayerPrecision& precision);

// Output, h_n, c_n (c_n undefined but for lstm). Differentiable; backward follows the plan: dgrad and wgrad formats
// apply to the gate gradients, wgrad GEMMs run once over all time steps. Emits one forward event and one per backward
// pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor> run_rnn(const RnnCall& call, const LayerRef& layer);

}  // namespace hpqf::engine
