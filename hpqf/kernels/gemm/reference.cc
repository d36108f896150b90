// The definition of the packed operands and of the product, one element at a time: what every path must equal bit for
// bit under the same code rules.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {
namespace {

float element(const MatrixView& x, int64_t row, int64_t k) {
  if (row >= x.rows || k >= x.k) return 0;
  return x.k_major ? x.data[k * x.stride + row] : x.data[row * x.stride + k];
}

float block_scale(const PackJob& job, int64_t row, int64_t k0, int64_t k_padded) {
  const bool stochastic = job.rounding.rounding == Rounding::stochastic;
  float largest = 0, group = 0;
  for (int64_t k = 0; k < k_padded; ++k) {
    const float x = std::fabs(element(job.from, row, k0 + k));
    if (!std::isfinite(x)) return std::nanf("");
    largest = std::max(largest, x);
  }
  float scale = largest / scale_divisor(job.rule.largest, stochastic);
  if (job.rule.bounded) {
    for (int64_t k = 0; k < k_padded; k += 8)
      for (int64_t pair : {0, 2}) {
        auto x = [&](int64_t i) { return std::fabs(element(job.from, row, k0 + k + pair + i)); };
        group = std::max(group, (x(0) + x(4)) + (x(1) + x(5)));
      }
    scale = std::max(scale, group / group_divisor(stochastic));
  }
  return std::max(scale, smallest_scale(stochastic));
}

int code(const PackJob& job, int64_t row, int64_t k, float scale) {
  if (std::isnan(scale)) return 0;
  const float x = element(job.from, row, k);
  if (job.rounding.rounding == Rounding::nearest_even) return int(std::nearbyint(x * (1.0f / scale)));
  const int fixed = int(std::nearbyint(x * (65536.0f / scale)));
  return (fixed + int(random16(row_key(job.rounding.seed, row), k))) >> 16;
}

template <Grid G>
int64_t pack(const PackJob& job, int64_t panel, int64_t panel_rows, int64_t b, char* block, int64_t header, bool is_b) {
  const int64_t k0 = b * job.blocks.block, k_padded = job.blocks.padded(b);
  constexpr int64_t kWord = G == Grid::int8 ? 4 : 2;
  int64_t bad = 0;
  for (int64_t r = 0; r < panel_rows; ++r) {
    const int64_t row = panel * panel_rows + r;
    const float scale = block_scale(job, row, k0, k_padded);
    bad += std::isnan(scale);
    std::memcpy(block + 4 * r, &scale, 4);
    int32_t sum = 0;
    for (int64_t k = 0; k < k_padded; ++k) {
      const int q = code(job, row, k0 + k, scale);
      sum += q;
      char* word = block + header + (k / kWord * panel_rows + r) * 4;
      if constexpr (G == Grid::int8) {
        word[k % kWord] = char(q + job.rule.offset);
      } else {
        const auto lane = int16_t(q);
        std::memcpy(word + k % kWord * 2, &lane, 2);
      }
    }
    if (G == Grid::int8 && is_b) {
      sum *= job.rule.start_factor;
      std::memcpy(block + 64 + 4 * r, &sum, 4);
    }
  }
  return bad;
}

int64_t pack_a(const PackJob& job, int64_t first, int64_t last, int64_t b0, int64_t b1, char* out) {
  int64_t bad = 0;
  const Grid g = job.blocks.grid;
  for (int64_t p = first; p < last; ++p)
    for (int64_t b = b0; b < b1; ++b) {
      char* block =
          out + (p - first) * job.blocks.a_panel_bytes(b0, b1) + (b - b0) * job.blocks.a_bytes(job.blocks.block);
      bad += g == Grid::int8 ? pack<Grid::int8>(job, p, kPanelA, b, block, a_header(g), false)
                             : pack<Grid::int12>(job, p, kPanelA, b, block, a_header(g), false);
    }
  return bad;
}

int64_t pack_b(const PackJob& job, int64_t first, int64_t last, char* out) {
  int64_t bad = 0;
  const Grid g = job.blocks.grid;
  for (int64_t p = first; p < last; ++p)
    for (int64_t b = 0; b < job.blocks.count(); ++b) {
      char* block = out + p * job.blocks.b_panel_bytes() + b * job.blocks.b_bytes(job.blocks.block);
      bad += g == Grid::int8 ? pack<Grid::int8>(job, p, kPanelB, b, block, b_header(g), true)
                             : pack<Grid::int12>(job, p, kPanelB, b, block, b_header(g), true);
    }
  return bad;
}

template <class T>
T at(const char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <Grid G>
int32_t dot(const char* a, const char* b, int64_t k, int row, int column) {
  constexpr int64_t kWord = G == Grid::int8 ? 4 : 2;
  int32_t sum = G == Grid::int8 ? at<int32_t>(b + 64 + 4 * column) : 0;
  for (int64_t i = 0; i < k; ++i) {
    const char* x = a + a_header(G) + (i / kWord * kPanelA + row) * 4;
    const char* y = b + b_header(G) + (i / kWord * kPanelB + column) * 4;
    if constexpr (G == Grid::int8)
      sum += int(at<uint8_t>(x + i % kWord)) * int(at<int8_t>(y + i % kWord));
    else
      sum += int(at<int16_t>(x + i % kWord * 2)) * int(at<int16_t>(y + i % kWord * 2));
  }
  return sum;
}

template <Grid G>
void tile(const TileJob& job, int na, int nb) {
  for (int p = 0; p < na; ++p)
    for (int q = 0; q < nb; ++q)
      for (int r = 0; r < kPanelA; ++r)
        for (int x = 0; x < kPanelB; ++x) {
          float c = job.init[(p * kPanelA + r) * job.init_stride + q * kPanelB + x];
          for (int64_t block = 0; block < job.blocks; ++block) {
            const char* a = job.a + p * job.a_panel + block * job.a_block;
            const char* b = job.b + q * job.b_panel + block * job.b_block;
            const int32_t sum = dot<G>(a, b, block + 1 < job.blocks ? job.k : job.k_last, r, x);
            c = std::fma(float(sum), at<float>(a + 4 * r) * at<float>(b + 4 * x), c);
          }
          job.c[(p * kPanelA + r) * job.c_stride + q * kPanelB + x] = c;
        }
}

constexpr PathKernels kernels(float largest_a, int offset, bool bounded) {
  return {.a8 = {largest_a, offset, false, 0},
          .b8 = {127, 0, bounded, -offset},
          .a12 = {2047, 0, false, 0},
          .b12 = {2047, 0, false, 0},
          .panels_a = 2,
          .panels_b = 2,
          .pack_a = pack_a,
          .pack_b = pack_b,
          .tile8 = tile<Grid::int8>,
          .tile12 = tile<Grid::int12>,
          .conv = &kReferenceConvKernels};
}

}  // namespace

const PathKernels kReferenceKernels = kernels(63, 64, true);
const PathKernels kReferenceFullKernels = kernels(127, 128, false);

}  // namespace hpqf::kernels
