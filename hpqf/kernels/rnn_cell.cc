#include "hpqf/kernels/rnn_cell.h"

#include <cmath>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/rnn_cell_loops.h"

namespace hpqf::kernels {
#if defined(__x86_64__)
extern const RnnCellImplementation kRnnCellAvx2;
#endif

namespace {

struct Scalar {  // the definition: C library functions, one element at a time
  static constexpr int64_t kWidth = 1;
  float v;
  static Scalar load(const float* p, int64_t) { return {*p}; }
  void store(float* p, int64_t) const { *p = v; }
  static Scalar constant(float x) { return {x}; }
  friend Scalar operator+(Scalar a, Scalar b) { return {a.v + b.v}; }
  friend Scalar operator-(Scalar a, Scalar b) { return {a.v - b.v}; }
  friend Scalar operator*(Scalar a, Scalar b) { return {a.v * b.v}; }
  friend Scalar sigmoid(Scalar a) { return {1.0f / (1.0f + std::exp(-a.v))}; }
  friend Scalar tanh(Scalar a) { return {std::tanh(a.v)}; }
  friend Scalar relu(Scalar a) { return {a.v < 0 ? 0 : a.v}; }  // NaN stays
  friend Scalar relu_gradient(Scalar h, Scalar dh) { return {h.v <= 0 ? 0 : dh.v}; }
};

constexpr RnnCellImplementation kRef = RnnCellLoops<Scalar>::implementation("ref", [] { return true; });

const RnnCellImplementation& best() {
  static const RnnCellImplementation& chosen = first_runnable(rnn_cell_implementations());
  return chosen;
}

// A sigmoid costs about 1 ns with AVX2: 4096 LSTM elements are some 20 us, several times what waking a thread costs.
constexpr int64_t kGrain = 4096;

template <class Cell>
void run(const Cell& cell, void (*rows)(const Cell&, int64_t, int64_t)) {
  if (cell.rows <= 0 || cell.hidden <= 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / cell.hidden);
  base::parallel_for(0, cell.rows, grain, [&](int64_t first, int64_t last) { rows(cell, first, last); });
}

}  // namespace

void rnn_cell(const LstmForward& cell) { run(cell, best().lstm_forward); }
void rnn_cell(const LstmBackward& cell) { run(cell, best().lstm_backward); }
void rnn_cell(const GruForward& cell) { run(cell, best().gru_forward); }
void rnn_cell(const GruBackward& cell) { run(cell, best().gru_backward); }
void rnn_cell(const RnnForward& cell) { run(cell, best().rnn_forward); }
void rnn_cell(const RnnBackward& cell) { run(cell, best().rnn_backward); }

std::span<const RnnCellImplementation> rnn_cell_implementations() {
  static const RnnCellImplementation list[] = {
#if defined(__x86_64__)
    kRnnCellAvx2,
#endif
    kRef,
  };
  return list;
}

}  // namespace hpqf::kernels
