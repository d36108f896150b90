// The cell formulas over an abstract vector V, shared by the scalar twin and the SIMD files. V supplies kWidth, load
// and store of the first n lanes (n <= kWidth), a constant, + - *, sigmoid, tanh, relu and relu_gradient. Every
// including file must bring its own V (in an unnamed namespace), so that no instantiation is shared between ISAs.
#pragma once
#include <algorithm>
#include <cstdint>

#include "hpqf/kernels/rnn_cell.h"

namespace hpqf::kernels {

template <class V>
struct RnnCellLoops {
  // Calls body(j, n): n lanes of a row from j on.
  template <class Body>
  static void lanes(int64_t hidden, const Body& body) {
    for (int64_t j = 0; j < hidden; j += V::kWidth) body(j, std::min<int64_t>(V::kWidth, hidden - j));
  }

  static V with_dout(V dh, const float* dout, int64_t at, int64_t n) { return dout ? dh + V::load(dout + at, n) : dh; }

  static void lstm_forward(const LstmForward& a, int64_t first, int64_t last) {
    const int64_t H = a.hidden;
    for (int64_t row = first; row < last; ++row) {
      float* gi = a.gates + row * 4 * H;
      float *gf = gi + H, *gg = gf + H, *go = gg + H;
      lanes(H, [&](int64_t j, int64_t n) {
        const int64_t at = row * H + j;
        const V i = sigmoid(V::load(gi + j, n)), f = sigmoid(V::load(gf + j, n));
        const V g = tanh(V::load(gg + j, n)), o = sigmoid(V::load(go + j, n));
        const V c = f * V::load(a.c_prev + at, n) + i * g;
        i.store(gi + j, n);
        f.store(gf + j, n);
        g.store(gg + j, n);
        o.store(go + j, n);
        c.store(a.c + at, n);
        (o * tanh(c)).store(a.h + at, n);
      });
    }
  }

  static void lstm_backward(const LstmBackward& a, int64_t first, int64_t last) {
    const int64_t H = a.hidden;
    const V one = V::constant(1.0f);
    for (int64_t row = first; row < last; ++row) {
      const float* gate = a.gates + row * 4 * H;
      float* dgate = a.dgates + row * 4 * H;
      lanes(H, [&](int64_t j, int64_t n) {
        const int64_t at = row * H + j;
        const V i = V::load(gate + j, n), f = V::load(gate + H + j, n);
        const V g = V::load(gate + 2 * H + j, n), o = V::load(gate + 3 * H + j, n);
        const V c_prev = V::load(a.c_prev + at, n);
        const V tc = tanh(f * c_prev + i * g);  // cheaper to repeat than to keep one more array per step
        const V dh = with_dout(V::load(a.dh + at, n), a.dout, at, n);
        const V dc = V::load(a.dc + at, n) + dh * o * (one - tc * tc);
        (dc * g * i * (one - i)).store(dgate + j, n);
        (dc * c_prev * f * (one - f)).store(dgate + H + j, n);
        (dc * i * (one - g * g)).store(dgate + 2 * H + j, n);
        (dh * tc * o * (one - o)).store(dgate + 3 * H + j, n);
        (dc * f).store(a.dc + at, n);
      });
    }
  }

  static void gru_forward(const GruForward& a, int64_t first, int64_t last) {
    const int64_t H = a.hidden;
    for (int64_t row = first; row < last; ++row) {
      float* gate = a.gates + row * 3 * H;
      const float* hidden = a.hidden_gates + row * 3 * H;
      lanes(H, [&](int64_t j, int64_t n) {
        const int64_t at = row * H + j;
        const V r = sigmoid(V::load(gate + j, n) + V::load(hidden + j, n));
        const V z = sigmoid(V::load(gate + H + j, n) + V::load(hidden + H + j, n));
        const V hn = V::load(hidden + 2 * H + j, n);
        const V nn = tanh(V::load(gate + 2 * H + j, n) + r * hn);
        const V h = (V::load(a.h_prev + at, n) - nn) * z + nn;
        r.store(gate + j, n);
        z.store(gate + H + j, n);
        nn.store(gate + 2 * H + j, n);
        hn.store(a.hn + at, n);
        h.store(a.h + at, n);
      });
    }
  }

  static void gru_backward(const GruBackward& a, int64_t first, int64_t last) {
    const int64_t H = a.hidden;
    const V one = V::constant(1.0f);
    for (int64_t row = first; row < last; ++row) {
      const float* gate = a.gates + row * 3 * H;
      float *dx = a.dgates_x + row * 3 * H, *dhg = a.dgates_h + row * 3 * H;
      lanes(H, [&](int64_t j, int64_t n) {
        const int64_t at = row * H + j;
        const V r = V::load(gate + j, n), z = V::load(gate + H + j, n), nn = V::load(gate + 2 * H + j, n);
        const V dh = with_dout(V::load(a.dh + at, n), a.dout, at, n);
        const V dz = dh * (V::load(a.h_prev + at, n) - nn) * z * (one - z);
        const V dn = dh * (one - z) * (one - nn * nn);
        const V dr = dn * V::load(a.hn + at, n) * r * (one - r);
        dr.store(dx + j, n);
        dz.store(dx + H + j, n);
        dn.store(dx + 2 * H + j, n);
        dr.store(dhg + j, n);
        dz.store(dhg + H + j, n);
        (dn * r).store(dhg + 2 * H + j, n);
        (dh * z).store(a.dh + at, n);
      });
    }
  }

  static void rnn_forward(const RnnForward& a, int64_t first, int64_t last) {
    float* h = a.h + first * a.hidden;
    lanes((last - first) * a.hidden, [&](int64_t j, int64_t n) {
      const V x = V::load(h + j, n);
      (a.relu ? relu(x) : tanh(x)).store(h + j, n);
    });
  }

  static void rnn_backward(const RnnBackward& a, int64_t first, int64_t last) {
    const V one = V::constant(1.0f);
    const int64_t offset = first * a.hidden;
    lanes((last - first) * a.hidden, [&](int64_t j, int64_t n) {
      const int64_t at = offset + j;
      const V h = V::load(a.h + at, n);
      const V dh = with_dout(V::load(a.dh + at, n), a.dout, at, n);
      (a.relu ? relu_gradient(h, dh) : dh * (one - h * h)).store(a.dgates + at, n);
    });
  }

  static constexpr RnnCellImplementation implementation(const char* name, bool (*runnable)()) {
    return {name, runnable, lstm_forward, lstm_backward, gru_forward, gru_backward, rnn_forward, rnn_backward};
  }
};

}  // namespace hpqf::kernels
