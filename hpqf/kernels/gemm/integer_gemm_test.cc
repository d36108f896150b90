#include "hpqf/kernels/gemm/integer_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/paths_test.h"

namespace hpqf::kernels {
namespace {

constexpr PackRounding kNearest{};

std::vector<float> transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> t(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) t[size_t(c * rows + r)] = x[size_t(r * columns + c)];
  return t;
}

// Beside those of this CPU: the packing of AVX2 under the code rules of VNNI, multiplied by the reference.
std::vector<GemmPath> runnable_and_mixed_paths() {
  std::vector<GemmPath> paths = runnable_paths();
  for (const auto& path : gemm_paths())
    if (path.name == std::string("avx2") && path.runnable()) {
      static const PathKernels mixed = [&] {
        PathKernels k = kReferenceFullKernels;
        k.pack_a = path.kernels->pack_a, k.pack_b = path.kernels->pack_b;
        return k;
      }();
      paths.push_back({"avx2 packing, full int8", "", nullptr, Format::int8, &mixed});
    }
  return paths;
}

std::vector<float> product(const GemmPath& path, const MatrixView& a, const MatrixView& b, const GemmBlocks& blocks,
                           const PackRounding& ra = {}, const PackRounding& rb = {}, const float* bias = nullptr) {
  std::vector<float> c(size_t(a.rows * b.rows), -7.0f);
  gemm(path, a, ra, b, rb, blocks, {c.data(), b.rows, false, bias});
  return c;
}

double relative_error(const std::vector<float>& c, const std::vector<float>& a, const std::vector<float>& b, int64_t m,
                      int64_t n, int64_t k) {
  double error = 0, norm = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double exact = 0;
      for (int64_t p = 0; p < k; ++p) exact += double(a[size_t(i * k + p)]) * double(b[size_t(j * k + p)]);
      error += (c[size_t(i * n + j)] - exact) * (c[size_t(i * n + j)] - exact);
      norm += exact * exact;
    }
  return std::sqrt(error / norm);
}

TEST(IntegerGemm, SaysWhichPathsRun) {
  for (const auto& path : gemm_paths()) {
    std::printf("[ paths    ] %s (%s): %s\n", path.name, path.needs, path.runnable() ? "runs" : "NOT RUN on this CPU");
    EXPECT_EQ(path.a_format, path.kernels->a8.largest == 63 ? Format::int7 : Format::int8);
  }
}

// Every path, form, grid, block, rounding and many ragged sizes against the definition, bit for bit.
TEST(IntegerGemm, EqualsTheDefinitionBitForBit) {
  const std::tuple<int64_t, int64_t, int64_t> sizes[] = {{1, 1, 1},    {4, 16, 32},   {5, 17, 33},
                                                         {7, 3, 64},   {64, 48, 96},  {13, 40, 31},
                                                         {33, 65, 70}, {36, 20, 300}, {3, 100, 129}};
  for (const auto& path : runnable_and_mixed_paths())
    for (auto [m, n, k] : sizes) {
      const auto a = normal(m * k, 1), b = normal(n * k, 2), bias = normal(n, 3);
      const auto at = transposed(a, m, k), bt = transposed(b, n, k);
      const MatrixView ar{a.data(), m, k, k, false}, ac{at.data(), m, k, m, true};
      const MatrixView br{b.data(), n, k, k, false}, bc{bt.data(), n, k, n, true};
      for (Grid grid : {Grid::int8, Grid::int12})
        for (int block : {32, 64, 128, 256})
          for (bool stochastic : {false, true}) {
            const PackRounding ra{stochastic ? Rounding::stochastic : Rounding::nearest_even, 11};
            const PackRounding rb{stochastic ? Rounding::stochastic : Rounding::nearest_even, 12};
            const auto want = product(twin(path), ar, br, {grid, block}, ra, rb, bias.data());
            for (const auto& [x, y] : {std::pair{ar, br}, std::pair{ar, bc}, std::pair{ac, bc}, std::pair{ac, br}})
              ASSERT_EQ(product(path, x, y, {grid, block}, ra, rb, bias.data()), want)
                  << path.name << " " << m << "x" << n << "x" << k << " grid " << int(grid) << " block " << block
                  << " stochastic " << stochastic << " k-major " << x.k_major << y.k_major;
          }
    }
}

TEST(IntegerGemm, ErrorIsThatOfTheCodes) {
  const int64_t m = 64, n = 48, k = 1024;
  const auto a = normal(m * k, 1), b = normal(n * k, 2);
  const MatrixView av{a.data(), m, k, k}, bv{b.data(), n, k, k};
  for (const auto& path : runnable_and_mixed_paths()) {
    const double eight = relative_error(product(path, av, bv, {Grid::int8, 64}), a, b, m, n, k);
    const double twelve = relative_error(product(path, av, bv, {Grid::int12, 64}), a, b, m, n, k);
    // 7 bits and 8: 1.4 %; 8 and 8: 0.8 %; 12 and 12: 0.05 %.
    EXPECT_LT(eight, path.a_format == Format::int7 ? 0.015 : 0.010) << path.name;
    EXPECT_GT(eight, 0.004) << path.name;
    EXPECT_LT(twelve, 0.0007) << path.name;
  }
}

// All signs aligned at the largest codes, and at every 16-bit group: the sums are those of wide integers.
TEST(IntegerGemm, TheWorstCaseDoesNotSaturate) {
  const int64_t m = 4, n = 16, k = 256;
  for (const auto& path : runnable_and_mixed_paths())
    for (Grid grid : {Grid::int8, Grid::int12})
      for (float sign : {1.0f, -1.0f})
        for (bool stochastic : {false, true}) {
          std::vector<float> a(size_t(m * k), 3.0f), b(size_t(n * k), sign * 5.0f);
          const PackRounding r{stochastic ? Rounding::stochastic : Rounding::nearest_even, 5};
          const auto c = product(path, {a.data(), m, k, k}, {b.data(), n, k, k}, {grid, 64}, r, r);
          for (float x : c) EXPECT_NEAR(x, sign * 15.0f * k, 15.0f * k * 0.02f) << path.name;
          EXPECT_EQ(c, product(twin(path), {a.data(), m, k, k}, {b.data(), n, k, k}, {grid, 64}, r, r)) << path.name;
        }
}

TEST(IntegerGemm, NanAndInfinityReachTheResultAndAreCounted) {
  const int64_t m = 9, n = 20, k = 130;
  for (const auto& path : runnable_and_mixed_paths())
    for (Grid grid : {Grid::int8, Grid::int12})
      for (float poison : {std::nanf(""), INFINITY, -INFINITY})
        for (bool in_a : {true, false})
          for (bool k_major : {true, false}) {
            auto a = normal(m * k, 1), b = normal(n * k, 2);
            (in_a ? a : b)[size_t(3 * k + 77)] = poison;
            const auto at = transposed(a, m, k), bt = transposed(b, n, k);
            const MatrixView av = k_major ? MatrixView{at.data(), m, k, m, true} : MatrixView{a.data(), m, k, k};
            const MatrixView bv = k_major ? MatrixView{bt.data(), n, k, n, true} : MatrixView{b.data(), n, k, k};
            std::vector<float> c(size_t(m * n));
            EXPECT_EQ(gemm(path, av, kNearest, bv, kNearest, {grid, 64}, {c.data(), n}), 1) << path.name;
            for (int64_t i = 0; i < m; ++i)
              for (int64_t j = 0; j < n; ++j)
                EXPECT_EQ(std::isnan(c[size_t(i * n + j)]), in_a ? i == 3 : j == 3) << path.name << i << "," << j;
          }
}

TEST(IntegerGemm, ZeroDenormalAndHugeBlocks) {
  const int64_t m = 4, n = 16, k = 64;
  for (const auto& path : runnable_and_mixed_paths())
    for (Grid grid : {Grid::int8, Grid::int12})
      for (bool stochastic : {false, true}) {
        const PackRounding r{stochastic ? Rounding::stochastic : Rounding::nearest_even, 9};
        const std::vector<float> zero(size_t(m * k), 0.0f), one(size_t(n * k), 1.0f);
        for (float x : product(path, {zero.data(), m, k, k}, {one.data(), n, k, k}, {grid, 64}, r, r)) EXPECT_EQ(x, 0);
        const std::vector<float> denormal(size_t(m * k), 1e-40f);
        for (float x : product(path, {denormal.data(), m, k, k}, {one.data(), n, k, k}, {grid, 64}, r, r)) {
          EXPECT_TRUE(std::isfinite(x));
          EXPECT_LT(std::fabs(x), 1e-30f);
        }
        std::vector<float> outlier(size_t(m * k), 1.0f);
        outlier[5] = 1e6f;
        const auto c = product(path, {outlier.data(), m, k, k}, {one.data(), n, k, k}, {grid, 64}, r, r);
        EXPECT_NEAR(c[0], 1e6f, 1e6f * 0.02f);
        const std::vector<float> huge(size_t(m * k), 3e38f), small(size_t(n * k), 1e-30f);
        for (float x : product(path, {huge.data(), m, k, k}, {small.data(), n, k, k}, {grid, 64}, r, r))
          EXPECT_NEAR(x, 3e8f * k, 3e8f * k * 0.02f);
      }
}

TEST(IntegerGemm, StochasticRoundingIsUnbiased) {
  const int64_t m = 8, n = 16, k = 256, draws = 256;
  const auto a = normal(m * k, 1), b = normal(n * k, 2);
  for (const auto& path : runnable_and_mixed_paths()) {
    std::vector<double> mean(size_t(m * n));
    double single = 0;
    for (uint64_t seed = 0; seed < draws; ++seed) {
      const auto c = product(path, {a.data(), m, k, k}, {b.data(), n, k, k}, {Grid::int8, 64},
                             {Rounding::stochastic, 2 * seed}, {Rounding::stochastic, 2 * seed + 1});
      single += relative_error(c, a, b, m, n, k) / draws;
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += c[i] / double(draws);
    }
    const double averaged = relative_error(std::vector<float>(mean.begin(), mean.end()), a, b, m, n, k);
    // Independent errors shrink by sqrt(256) = 16; a bias would stay.
    EXPECT_LT(averaged, single / 11) << path.name;
  }
}

TEST(IntegerGemm, AccumulatesAndKeepsToItsStride) {
  const int64_t m = 6, n = 18, k = 40, stride = 23;
  for (const auto& path : runnable_and_mixed_paths()) {
    const auto a = normal(m * k, 1), b = normal(n * k, 2);
    std::vector<float> c(size_t(m * stride), 100.0f);
    const MatrixView av{a.data(), m, k, k}, bv{b.data(), n, k, k};
    gemm(path, av, kNearest, bv, kNearest, {Grid::int12, 32}, {c.data(), stride, true});
    const auto alone = product(path, av, bv, {Grid::int12, 32});
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < stride; ++j) {
        if (j < n)
          EXPECT_NEAR(c[size_t(i * stride + j)], 100.0f + alone[size_t(i * n + j)], 2e-5f) << path.name;
        else
          EXPECT_EQ(c[size_t(i * stride + j)], 100.0f) << path.name;
      }
  }
}

TEST(IntegerGemm, ThreadsDoNotChangeTheResult) {
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{300, 70, 260}, {17, 500, 300}}) {
    const auto a = normal(m * k, 1), b = normal(n * k, 2);
    for (const auto& path : runnable_and_mixed_paths())
      for (bool k_major : {false, true}) {
        const auto at = transposed(a, m, k), bt = transposed(b, n, k);
        const MatrixView av = k_major ? MatrixView{at.data(), m, k, m, true} : MatrixView{a.data(), m, k, k};
        const MatrixView bv = k_major ? MatrixView{bt.data(), n, k, n, true} : MatrixView{b.data(), n, k, k};
        const PackRounding r{Rounding::stochastic, 3};
        const auto serial = product(path, av, bv, {}, r, r);
        base::set_parallel_backend(in_pieces);
        const auto pieces = product(path, av, bv, {}, r, r);
        base::set_parallel_backend(nullptr);
        EXPECT_EQ(serial, pieces) << path.name << " " << m;
      }
  }
}

TEST(IntegerGemm, MisalignedOperandsAndEmptySizes) {
  const int64_t m = 5, n = 7, k = 37;
  auto a = normal(m * k + 1, 1), b = normal(n * k + 3, 2);
  for (const auto& path : runnable_and_mixed_paths()) {
    std::vector<float> shifted_a(a.begin() + 1, a.end()), shifted_b(b.begin() + 3, b.end());
    EXPECT_EQ(product(path, {a.data() + 1, m, k, k}, {b.data() + 3, n, k, k}, {}),
              product(path, {shifted_a.data(), m, k, k}, {shifted_b.data(), n, k, k}, {}));
    const float bias[3] = {1, 2, 3};
    EXPECT_EQ(product(path, {nullptr, 2, 0, 0}, {nullptr, 3, 0, 0}, {}, {}, {}, bias),
              (std::vector<float>{1, 2, 3, 1, 2, 3}));
    EXPECT_TRUE(product(path, {nullptr, 0, 5, 5}, {b.data(), 3, 5, 5}, {}).empty());
    EXPECT_TRUE(product(path, {a.data(), 3, 5, 5}, {nullptr, 0, 5, 5}, {}).empty());
  }
}

TEST(IntegerGemm, RefusesWhatDoesNotFit) {
  std::vector<float> x(4096);
  const MatrixView a{x.data(), 8, 32, 32}, b{x.data() + 1024, 8, 16, 16}, good{x.data() + 1024, 8, 32, 32};
  const GemmPath& path = reference();
  float* c = x.data() + 3000;
  EXPECT_THROW(gemm(path, a, {}, b, {}, {}, {c, 8}), Error);
  EXPECT_THROW(gemm(path, a, {}, good, {}, {Grid::int8, 48}, {c, 8}), Error);
  EXPECT_THROW(gemm(path, a, {}, good, {}, {}, {c, 7}), Error);
  EXPECT_THROW(gemm(path, a, {}, good, {}, {}, {x.data() + 100, 8}), Error);
  EXPECT_THROW(gemm(path, a, {}, good, {}, {}, {c, 8, true, x.data()}), Error);
  EXPECT_THROW(gemm(path, {x.data(), 8, 32, 31}, {}, good, {}, {}, {c, 8}), Error);
  EXPECT_NO_THROW(gemm(path, a, {}, good, {}, {}, {c, 8}));
}

}  // namespace
}  // namespace hpqf::kernels
