// Every implementation against the formulas in double precision, on ragged sizes, with guard bytes, and on extreme
// values.
#include "hpqf/kernels/rnn_cell.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hpqf/base/parallel.h"

namespace hpqf::kernels {
namespace {

constexpr float kGuard = 12345.0f;
constexpr int64_t kGuards = 16;

class Array {  // n random values between guards
 public:
  Array(int64_t n, std::mt19937& random, float spread = 2.0f) : n_(n), data_(n + 2 * kGuards, kGuard) {
    std::normal_distribution<float> normal(0.0f, spread);
    for (int64_t i = 0; i < n; ++i) data_[kGuards + i] = normal(random);
  }
  float* get() { return data_.data() + kGuards; }
  float operator[](int64_t i) const { return data_[kGuards + i]; }
  bool guards_intact() const {
    for (int64_t i = 0; i < kGuards; ++i) {
      if (data_[i] != kGuard || data_[kGuards + n_ + i] != kGuard) return false;
    }
    return true;
  }

 private:
  int64_t n_;
  std::vector<float> data_;
};

double sigma(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void expect_close(double expected, double actual, const char* what) {
  EXPECT_NEAR(expected, actual, 4e-7 * std::max(1.0, std::abs(expected))) << what;
}

struct Size {
  int64_t rows, hidden;
};

class RnnCell : public testing::TestWithParam<std::tuple<int, Size>> {
 protected:
  const RnnCellImplementation& cell() const { return rnn_cell_implementations()[std::get<0>(GetParam())]; }
  int64_t rows() const { return std::get<1>(GetParam()).rows; }
  int64_t hidden() const { return std::get<1>(GetParam()).hidden; }
  int64_t numel() const { return rows() * hidden(); }
  void SetUp() override {
    if (!cell().runnable()) GTEST_SKIP() << cell().name << " does not run on this CPU";
  }
  std::mt19937 random{7};
};

TEST_P(RnnCell, LstmForwardAndBackward) {
  const int64_t H = hidden();
  Array gates(4 * numel(), random), c_prev(numel(), random), c(numel(), random), h(numel(), random);
  const Array x = gates;
  cell().lstm_forward({rows(), H, gates.get(), c_prev.get(), c.get(), h.get()}, 0, rows());
  Array dout(numel(), random), dh(numel(), random), dc(numel(), random), dgates(4 * numel(), random);
  const Array dc_in = dc;
  cell().lstm_backward({rows(), H, gates.get(), c_prev.get(), dout.get(), dh.get(), dc.get(), dgates.get()}, 0, rows());
  for (int64_t row = 0; row < rows(); ++row) {
    for (int64_t j = 0; j < H; ++j) {
      const int64_t g4 = row * 4 * H + j, at = row * H + j;
      const double i = sigma(x[g4]), f = sigma(x[g4 + H]), g = std::tanh(double{x[g4 + 2 * H]}),
                   o = sigma(x[g4 + 3 * H]);
      const double c_now = f * c_prev[at] + i * g, tc = std::tanh(c_now);
      expect_close(i, gates[g4], "i");
      expect_close(f, gates[g4 + H], "f");
      expect_close(g, gates[g4 + 2 * H], "g");
      expect_close(o, gates[g4 + 3 * H], "o");
      expect_close(c_now, c[at], "c");
      expect_close(o * tc, h[at], "h");
      const double d = double{dh[at]} + dout[at], dcn = dc_in[at] + d * o * (1 - tc * tc);
      // Differences of activations near 1 lose digits in fp32, in proportion to what multiplies them.
      const double tolerance = 2e-6 * (1 + std::abs(dcn)) * (1 + std::abs(c_prev[at]));
      EXPECT_NEAR(dcn * g * i * (1 - i), dgates[g4], tolerance);
      EXPECT_NEAR(dcn * c_prev[at] * f * (1 - f), dgates[g4 + H], tolerance);
      EXPECT_NEAR(dcn * i * (1 - g * g), dgates[g4 + 2 * H], tolerance);
      EXPECT_NEAR(d * tc * o * (1 - o), dgates[g4 + 3 * H], 2e-6 * (1 + std::abs(d)));
      EXPECT_NEAR(dcn * f, dc[at], tolerance);
    }
  }
  for (const Array* array : {&gates, &c_prev, &c, &h, &dout, &dh, &dc, &dgates}) EXPECT_TRUE(array->guards_intact());
}

TEST_P(RnnCell, GruForwardAndBackward) {
  const int64_t H = hidden();
  Array gates(3 * numel(), random), hidden_gates(3 * numel(), random), h_prev(numel(), random);
  Array hn(numel(), random), h(numel(), random);
  const Array x = gates;
  cell().gru_forward({rows(), H, gates.get(), hidden_gates.get(), h_prev.get(), hn.get(), h.get()}, 0, rows());
  Array dout(numel(), random), dh(numel(), random), dx(3 * numel(), random), dhg(3 * numel(), random);
  const Array dh_in = dh;
  cell().gru_backward({rows(), H, gates.get(), hn.get(), h_prev.get(), dout.get(), dh.get(), dx.get(), dhg.get()}, 0,
                      rows());
  for (int64_t row = 0; row < rows(); ++row) {
    for (int64_t j = 0; j < H; ++j) {
      const int64_t g3 = row * 3 * H + j, at = row * H + j;
      const double r = sigma(double{x[g3]} + hidden_gates[g3]), z = sigma(double{x[g3 + H]} + hidden_gates[g3 + H]);
      const double n = std::tanh(x[g3 + 2 * H] + r * hidden_gates[g3 + 2 * H]);
      const double scale = 1 + std::abs(hidden_gates[g3 + 2 * H]) + std::abs(h_prev[at]);
      EXPECT_NEAR(r, gates[g3], 1e-6);
      EXPECT_NEAR(z, gates[g3 + H], 1e-6);
      EXPECT_NEAR(n, gates[g3 + 2 * H], 1e-6 * scale);
      EXPECT_EQ(hidden_gates[g3 + 2 * H], hn[at]);
      EXPECT_NEAR((h_prev[at] - n) * z + n, h[at], 1e-6 * scale);
      const double d = double{dh_in[at]} + dout[at], tolerance = 2e-6 * (1 + std::abs(d)) * scale;
      const double dn = d * (1 - z) * (1 - n * n), dr = dn * hn[at] * r * (1 - r),
                   dz = d * (h_prev[at] - n) * z * (1 - z);
      for (const Array* side : {&dx, &dhg}) {
        EXPECT_NEAR(dr, (*side)[g3], tolerance);
        EXPECT_NEAR(dz, (*side)[g3 + H], tolerance);
      }
      EXPECT_NEAR(dn, dx[g3 + 2 * H], tolerance);
      EXPECT_NEAR(dn * r, dhg[g3 + 2 * H], tolerance);
      EXPECT_NEAR(d * z, dh[at], tolerance);
    }
  }
  for (const Array* array : {&gates, &hidden_gates, &h_prev, &hn, &h, &dout, &dh, &dx, &dhg}) {
    EXPECT_TRUE(array->guards_intact());
  }
}

TEST_P(RnnCell, RnnForwardAndBackward) {
  for (bool relu : {false, true}) {
    Array h(numel(), random), dh(numel(), random), dgates(numel(), random);
    const Array x = h;
    cell().rnn_forward({rows(), hidden(), relu, h.get()}, 0, rows());
    cell().rnn_backward({rows(), hidden(), relu, h.get(), nullptr, dh.get(), dgates.get()}, 0, rows());
    for (int64_t i = 0; i < numel(); ++i) {
      const double y = relu ? std::max(0.0f, x[i]) : std::tanh(double{x[i]});
      expect_close(y, h[i], "h");
      EXPECT_NEAR(relu ? (x[i] > 0 ? dh[i] : 0.0) : dh[i] * (1 - y * y), dgates[i], 2e-6 * (1 + std::abs(dh[i])));
    }
    EXPECT_TRUE(h.guards_intact() && dh.guards_intact() && dgates.guards_intact());
  }
}

class RnnCellValues : public testing::TestWithParam<int> {
 protected:
  const RnnCellImplementation& cell() const { return rnn_cell_implementations()[GetParam()]; }
  void SetUp() override {
    if (!cell().runnable()) GTEST_SKIP() << cell().name << " does not run on this CPU";
  }
};

TEST_P(RnnCellValues, ExtremeValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {0.0f,  -0.0f,  inf,    -inf,    nan,    100.0f, -100.0f,
                          88.9f, -88.9f, 1e-42f, -1e-42f, 0.625f, -0.625f};
  const int64_t n = static_cast<int64_t>(x.size());
  // LSTM with c_prev = 0 shows sigmoid in the gates i, f, o and tanh in g.
  std::vector<float> gates, zero(n, 0.0f), c(n), h(n);
  for (int copy = 0; copy < 4; ++copy) gates.insert(gates.end(), x.begin(), x.end());
  cell().lstm_forward({1, n, gates.data(), zero.data(), c.data(), h.data()}, 0, 1);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(gates[i]) && std::isnan(gates[2 * n + i]) && std::isnan(c[i]) && std::isnan(h[i]));
      continue;
    }
    EXPECT_NEAR(sigma(x[i]), gates[i], 1.5e-7);
    const float t = std::tanh(x[i]);
    EXPECT_NEAR(t, gates[2 * n + i], 2e-7 * std::abs(t));
  }
  EXPECT_EQ(1.0f, gates[2]);
  EXPECT_EQ(0.0f, gates[3]);
  EXPECT_EQ(1.0f, gates[2 * n + 2]);
  EXPECT_EQ(-1.0f, gates[2 * n + 3]);
  std::vector<float> y = x, dh(n, 3.0f), dgates(n);
  cell().rnn_forward({1, n, true, y.data()}, 0, 1);
  cell().rnn_backward({1, n, true, y.data(), nullptr, dh.data(), dgates.data()}, 0, 1);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(inf, y[2]);
  EXPECT_EQ(0.0f, y[3]);
  EXPECT_EQ(3.0f, dgates[4]);  // like torch: only h <= 0 stops the gradient
  EXPECT_EQ(0.0f, dgates[0]);
  EXPECT_EQ(3.0f, dgates[2]);
}

// One dense sweep of the transcendental functions: what a unit in the last place is worth differs over the range.
TEST_P(RnnCellValues, SigmoidAndTanhAreAccurate) {
  const int64_t n = 20001;
  std::vector<float> x(n), gates(4 * n), zero(n, 0.0f), c(n), h(n);
  for (int64_t i = 0; i < n; ++i) x[i] = -20.0f + 0.002f * static_cast<float>(i);
  for (int64_t i = 0; i < 4 * n; ++i) gates[i] = x[i % n];
  cell().lstm_forward({1, n, gates.data(), zero.data(), c.data(), h.data()}, 0, 1);
  double worst_sigmoid = 0, worst_tanh = 0;
  for (int64_t i = 0; i < n; ++i) {
    worst_sigmoid = std::max(worst_sigmoid, std::abs(gates[i] / sigma(x[i]) - 1));
    const double t = std::tanh(double{x[i]});
    if (t != 0) worst_tanh = std::max(worst_tanh, std::abs(gates[2 * n + i] / t - 1));
  }
  EXPECT_LT(worst_sigmoid, 4e-7);
  EXPECT_LT(worst_tanh, 4e-7);
}

INSTANTIATE_TEST_SUITE_P(All, RnnCell,
                         testing::Combine(testing::Range(0, static_cast<int>(rnn_cell_implementations().size())),
                                          testing::Values(Size{0, 8}, Size{1, 1}, Size{1, 7}, Size{3, 8}, Size{5, 13},
                                                          Size{2, 33}, Size{4, 64})));

INSTANTIATE_TEST_SUITE_P(All, RnnCellValues, testing::Range(0, static_cast<int>(rnn_cell_implementations().size())));

TEST(RnnCellList, TheTwinIsLast) {
  const auto list = rnn_cell_implementations();
  ASSERT_FALSE(list.empty());
  EXPECT_STREQ("ref", list.back().name);
  EXPECT_TRUE(list.back().runnable());
}

TEST(RnnCellSplit, RowsDoNotDependOnTheSplit) {
  std::mt19937 random(3);
  const int64_t rows = 9, H = 1021;
  Array gates(4 * rows * H, random), c(rows * H, random), h(rows * H, random);
  Array gates2 = gates, c2 = c, h2 = h;
  rnn_cell(LstmForward{rows, H, gates.get(), c.get(), c.get(), h.get()});
  base::set_parallel_backend([](int64_t begin, int64_t end, int64_t, const base::RangeBody& body) {
    for (int64_t i = end - 1; i >= begin; --i) body(i, i + 1);  // the finest split there is, backwards
  });
  rnn_cell(LstmForward{rows, H, gates2.get(), c2.get(), c2.get(), h2.get()});
  base::set_parallel_backend(nullptr);
  for (int64_t i = 0; i < rows * H; ++i) ASSERT_EQ(h[i], h2[i]) << i;
  EXPECT_TRUE(h2.guards_intact());
}

}  // namespace
}  // namespace hpqf::kernels
