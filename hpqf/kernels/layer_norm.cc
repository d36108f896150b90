#include "hpqf/kernels/layer_norm.h"

#include <algorithm>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/ref/layer_norm_ref.h"

namespace hpqf::kernels {
#if defined(__x86_64__)
extern const LayerNormImplementation kLayerNormAvx512, kLayerNormAvx2;
#endif

namespace {

const LayerNormImplementation& best() {
  static const LayerNormImplementation& chosen = first_runnable(layer_norm_implementations());
  return chosen;
}

// 16384 elements are some 5 us with AVX2, about what waking a thread costs.
constexpr int64_t kGrain = 16384;

// Pieces of rows for the sums over rows. Fewer than 16 rows are not worth an array of sums of their own: writing and
// adding it up costs about as much as two rows.
constexpr int64_t kMostPieces = 32, kLeastRows = 16;

int64_t piece_rows(int64_t rows) { return std::max(kLeastRows, (rows + kMostPieces - 1) / kMostPieces); }
int64_t pieces(int64_t rows) { return (rows + piece_rows(rows) - 1) / piece_rows(rows); }

int64_t grain_of(int64_t size) { return std::max<int64_t>(1, (kGrain + size - 1) / size); }

// One column after the other over the pieces, in their order.
void add_pieces(const float* scratch, int64_t count, int64_t cols, float* out) {
  std::copy_n(scratch, cols, out);
  for (int64_t piece = 1; piece < count; ++piece) {
    const float* sums = scratch + piece * 2 * cols;
    for (int64_t j = 0; j < cols; ++j) out[j] += sums[j];
  }
}

}  // namespace

int64_t layer_norm_scratch(int64_t rows, int64_t cols) { return rows <= 0 || cols <= 0 ? 0 : pieces(rows) * 2 * cols; }

void layer_norm(const LayerNormForward& a) {
  if (a.rows <= 0 || a.cols <= 0) return;
  base::parallel_for(0, a.rows, grain_of(a.cols), [&](int64_t first, int64_t last) { best().forward(a, first, last); });
}

void layer_norm(const LayerNormBackward& a) {
  if (a.cols <= 0) return;
  if (a.rows <= 0) {  // sums over no rows
    if (a.dweight) std::fill_n(a.dweight, a.cols, 0.0f);
    if (a.dbias) std::fill_n(a.dbias, a.cols, 0.0f);
    return;
  }
  const int64_t step = piece_rows(a.rows), count = pieces(a.rows);
  const bool sums = a.dweight || a.dbias;
  base::parallel_for(0, count, grain_of(step * a.cols), [&](int64_t first, int64_t last) {
    for (int64_t piece = first; piece < last; ++piece) {
      float* dweight = sums ? a.scratch + piece * 2 * a.cols : nullptr;
      float* dbias = sums ? dweight + a.cols : nullptr;
      best().backward(a, {piece * step, std::min(a.rows, (piece + 1) * step), dweight, dbias});
    }
  });
  if (a.dweight) add_pieces(a.scratch, count, a.cols, a.dweight);
  if (a.dbias) add_pieces(a.scratch + a.cols, count, a.cols, a.dbias);
}

std::span<const LayerNormImplementation> layer_norm_implementations() {
  static const LayerNormImplementation list[] = {
#if defined(__x86_64__)
    kLayerNormAvx512,
    kLayerNormAvx2,
#endif
    {"ref", [] { return true; }, &ref::layer_norm_forward, &ref::layer_norm_backward},
  };
  return list;
}

}  // namespace hpqf::kernels
