// Fused pointwise part of the recurrent cells: what is left of LSTM, GRU and RNN after the two GEMMs of a step. fp32
// only, because gates and cell state are state that errors pile up in. One read and one write of each array; the cost
// is that of the sigmoids and tanhs (5 per LSTM element, 3 per GRU element). The formulas are those of torch.nn.LSTM,
// GRU and RNN.
#pragma once
#include <cstdint>
#include <span>

#include "hpqf/base/export.h"

namespace hpqf::kernels {

// All arrays are contiguous: [rows][hidden], or [rows][k * hidden] with the gates of a row side by side. "in/out"
// arrays are overwritten. `dout` is the gradient that reaches h from the layer's output, added to the one from the next
// step; may be null.

struct LstmForward {  // i, f, g, o = sigmoid, sigmoid, tanh, sigmoid; c = f c_prev + i g; h = o tanh(c)
  int64_t rows = 0, hidden = 0;
  float* gates = nullptr;  // [rows][4 hidden] in: pre-activations i, f, g, o; out: activations
  const float* c_prev = nullptr;
  float* c = nullptr;  // may be c_prev
  float* h = nullptr;
};

struct LstmBackward {
  int64_t rows = 0, hidden = 0;
  const float* gates = nullptr;  // activations
  const float* c_prev = nullptr;
  const float* dout = nullptr;
  const float* dh = nullptr;
  float* dc = nullptr;      // in: gradient of c; out: of c_prev
  float* dgates = nullptr;  // gradient of the pre-activations
};

struct GruForward {  // r, z = sigmoid(x + h); n = tanh(x_n + r h_n); h = (h_prev - n) z + n
  int64_t rows = 0, hidden = 0;
  float* gates = nullptr;               // [rows][3 hidden] in: x W_ih + b_ih for r, z, n; out: activations
  const float* hidden_gates = nullptr;  // [rows][3 hidden] h_prev W_hh + b_hh
  const float* h_prev = nullptr;
  float* hn = nullptr;  // copy of the n part of hidden_gates, for backward
  float* h = nullptr;   // may be h_prev
};

struct GruBackward {
  int64_t rows = 0, hidden = 0;
  const float* gates = nullptr;
  const float* hn = nullptr;
  const float* h_prev = nullptr;
  const float* dout = nullptr;
  float* dh = nullptr;        // in: gradient of h; out: the part of h_prev's that does not pass W_hh
  float* dgates_x = nullptr;  // [rows][3 hidden] gradient of x W_ih + b_ih
  float* dgates_h = nullptr;  // [rows][3 hidden] gradient of h_prev W_hh + b_hh
};

struct RnnForward {  // h = tanh(h) or relu(h)
  int64_t rows = 0, hidden = 0;
  bool relu = false;
  float* h = nullptr;  // in: pre-activations; out: h
};

struct RnnBackward {
  int64_t rows = 0, hidden = 0;
  bool relu = false;
  const float* h = nullptr;
  const float* dout = nullptr;
  const float* dh = nullptr;
  float* dgates = nullptr;  // may be dh
};

// Run on the best implementation for this CPU, rows split by base::parallel_for (from 4096 elements on). A row's result
// does not depend on the split. NaN and infinity pass through as the formulas say.
HPQF_API void rnn_cell(const LstmForward& cell);
HPQF_API void rnn_cell(const LstmBackward& cell);
HPQF_API void rnn_cell(const GruForward& cell);
HPQF_API void rnn_cell(const GruBackward& cell);
HPQF_API void rnn_cell(const RnnForward& cell);
HPQF_API void rnn_cell(const RnnBackward& cell);

// The implementations, best first. Each function takes rows [first, last).
struct RnnCellImplementation {
  const char* name;    // "avx2", "ref"
  bool (*runnable)();  // may run on this CPU
  void (*lstm_forward)(const LstmForward&, int64_t first, int64_t last);
  void (*lstm_backward)(const LstmBackward&, int64_t first, int64_t last);
  void (*gru_forward)(const GruForward&, int64_t first, int64_t last);
  void (*gru_backward)(const GruBackward&, int64_t first, int64_t last);
  void (*rnn_forward)(const RnnForward&, int64_t first, int64_t last);
  void (*rnn_backward)(const RnnBackward&, int64_t first, int64_t last);
};
HPQF_API std::span<const RnnCellImplementation> rnn_cell_implementations();

}  // namespace hpqf::kernels
