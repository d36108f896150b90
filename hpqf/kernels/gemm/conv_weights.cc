// Packing weights: what is gathered here once saves every product from strides.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/conv_checks.h"
#include "hpqf/kernels/gemm/correlation.h"
#include "hpqf/kernels/gemm/path.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

// Some rows of one part's weights as a matrix [row][tap of the part][padded channel], in fp32.
class WeightRows {
 public:
  WeightRows(const ConvPlan& plan, const Correlation& c, const ConstImages& w, int64_t group)
      : plan_(plan),
        c_(c),
        kernel_w_(plan.shape.kernel_w),
        all_taps_(plan.shape.kernel_h * kernel_w_),
        in_(plan.shape.in_channels / plan.shape.groups),
        planes_(w.layout == ImageLayout::channels_first),
        out_stride_(in_ * all_taps_),
        in_stride_(planes_ ? all_taps_ : 1),
        tap_stride_(planes_ ? 1 : in_),
        padded_(plan.record.block * plan.record.blocks),
        from_(w.data + group * (plan.shape.out_channels / plan.shape.groups) * out_stride_) {}

  // Also writes one row behind them, for what is not kept.
  void copy(const ConvKernels& kernels, int64_t first, int64_t rows, float* to, int64_t stride) const {
    if (padded_ > plan_.from_channels) std::memset(to, 0, size_t(rows * stride) * 4);
    if (plan_.pass == ConvPass::forward)
      copy_forward(first, rows, to, stride);
    else
      copy_transposed(kernels, first, rows, to, stride);
  }

 private:
  void copy_forward(int64_t first, int64_t rows, float* to, int64_t stride) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t tap = 0; tap < all_taps_; ++tap) {
        const float* from = from_ + (first + r) * out_stride_ + tap * tap_stride_;
        float* line = to + r * stride + tap * padded_;
        for (int64_t channel = 0; channel < in_; ++channel) line[channel] = from[channel * in_stride_];
      }
  }

  // Rows are input channels: sixteen neighbours in memory, of all output channels, at a time.
  void copy_transposed(const ConvKernels& kernels, int64_t first, int64_t rows, float* to, int64_t stride) const {
    const int64_t runs = planes_ ? 1 : all_taps_, length = planes_ ? rows * all_taps_ : rows;
    for (int64_t run = 0; run < runs; ++run)
      for (int64_t i = 0; i < length; i += kPanelB) {
        const int64_t at = first * in_stride_ + run * tap_stride_ + i;
        float* column[kPanelB];
        for (int64_t j = 0; j < kPanelB; ++j) {
          const int64_t row = planes_ ? (i + j) / all_taps_ : i + j, tap = planes_ ? (i + j) % all_taps_ : run;
          const int64_t slot = row < rows ? part_tap(tap) : -1;
          column[j] = slot < 0 ? to + rows * stride : to + row * stride + slot * padded_;
        }
        if (at + kPanelB <= out_stride_) {
          kernels.store_columns(from_ + at, out_stride_, plan_.from_channels, column);
        } else {
          for (int64_t j = 0; j < std::min<int64_t>(kPanelB, out_stride_ - at); ++j)
            for (int64_t o = 0; o < plan_.from_channels; ++o) column[j][o] = from_[o * out_stride_ + at + j];
        }
      }
  }

  // Which tap of the part a kernel element is, or -1.
  int64_t part_tap(int64_t tap) const {
    const int64_t y = tap / kernel_w_ - c_.y.first, x = tap % kernel_w_ - c_.x.first;
    if (y < 0 || x < 0 || y % c_.y.every || x % c_.x.every) return -1;
    return y / c_.y.every * c_.x.taps + x / c_.x.every;
  }

  const ConvPlan& plan_;
  const Correlation& c_;
  const int64_t kernel_w_, all_taps_, in_;
  const bool planes_;
  const int64_t out_stride_, in_stride_, tap_stride_, padded_;
  const float* from_;
};

}  // namespace

int64_t conv_weight_bytes(const ConvShape& shape, ConvPass pass, const GemmBlocks& blocks) {
  check(shape, blocks);
  const ConvPlan plan(shape, pass, blocks);
  return plan.weights(plan.parts_y(), 0, 0);
}

int64_t conv_pack_weights(const GemmPath& path, const ConvShape& shape, ConvPass pass, const ConstImages& w,
                          const GemmBlocks& blocks, const PackRounding& rounding, void* out) {
  check(shape, blocks);
  const ConvPlan plan(shape, pass, blocks);
  const PathKernels& kernels = *path.kernels;
  constexpr int64_t kPanels = 4;  // at a time: the sixteen rows of a piece
  const int64_t pieces = divide_up(plan.panels_a(), kPanels);
  std::atomic<int64_t> bad{0};
  char* to = static_cast<char*>(out);
  for (int64_t i = 0; i < plan.parts_y() * plan.parts_x(); ++i) {
    const Correlation c = plan.part(i / plan.parts_x(), i % plan.parts_x());
    const BlockGrid grid = plan.grid(c);
    if (grid.k == 0) continue;
    const int64_t stride = grid.k + 16;  // not a power of two: rows would share cache sets
    auto pack = [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t group = p / pieces, panel = p % pieces * kPanels;
        const int64_t panels = std::min(kPanels, plan.panels_a() - panel);
        const int64_t row = panel * kPanelA, rows = std::min(panels * kPanelA, plan.to_channels - row);
        float* copy = reinterpret_cast<float*>(scratch(Scratch::output, (rows + 1) * stride * 4));
        WeightRows(plan, c, w, group).copy(*kernels.conv, row, rows, copy, stride);
        const PackJob job{{copy, rows, grid.k, stride, false},
                          grid,
                          blocks.grid == Grid::int8 ? kernels.a8 : kernels.a12,
                          piece_rounding(rounding, (i * shape.groups + group) * pieces + p % pieces)};
        bad += kernels.pack_a(job, 0, panels, 0, grid.count(),
                              to + group * plan.weight_bytes(c) + panel * plan.panel_bytes(c));
      }
    };
    const int64_t grain = std::max<int64_t>(1, 16384 / (kPanels * kPanelA * grid.k));  // about 10 us
    base::parallel_for(0, shape.groups * pieces, grain, std::ref(pack));
    to += shape.groups * plan.weight_bytes(c);
  }
  return bad;
}

}  // namespace hpqf::kernels
