#include "hpqf/kernels/gemm/integer_conv.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/conv_checks.h"
#include "hpqf/kernels/gemm/conv_sampled.h"
#include "hpqf/kernels/gemm/correlation.h"
#include "hpqf/kernels/gemm/path.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

// Rows of one part's weights as a matrix: row, tap of the part, channel.
void copy_rows(const ConvPlan& plan, const Correlation& c, const ConstImages& w, int64_t group, int64_t first,
               int64_t rows, float* to, int64_t stride) {
  const ConvShape& s = plan.shape;
  const int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups, all_taps = s.kernel_h * s.kernel_w;
  const bool planes = w.layout == ImageLayout::channels_first;
  const int64_t out_stride = in * all_taps, in_stride = planes ? all_taps : 1, tap_stride = planes ? 1 : in;
  const bool forward = plan.pass == ConvPass::forward;
  const int64_t row_stride = forward ? out_stride : in_stride, channel_stride = forward ? in_stride : out_stride;
  const float* from = w.data + group * out * out_stride + first * row_stride;
  const int64_t padded = plan.record.block * plan.record.blocks;
  std::memset(to, 0, size_t(rows * stride) * 4);
  auto copy = [&](int64_t r, int64_t channel) {
    for (int64_t i = 0; i < c.y.taps; ++i)
      for (int64_t j = 0; j < c.x.taps; ++j)
        to[r * stride + (i * c.x.taps + j) * padded + channel] =
            from[r * row_stride + channel * channel_stride +
                 ((c.y.first + i * c.y.every) * s.kernel_w + c.x.first + j * c.x.every) * tap_stride];
  };
  // What lies together is read together.
  if (forward) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t channel = 0; channel < plan.from_channels; ++channel) copy(r, channel);
  } else {
    for (int64_t channel = 0; channel < plan.from_channels; ++channel)
      for (int64_t r = 0; r < rows; ++r) copy(r, channel);
  }
}

int64_t run(const GemmPath& path, const ConvShape& shape, ConvPass pass, const ConstImages& from,
            const PackRounding& rounding, const void* weights, const GemmBlocks& blocks, const Images& to,
            const float* bias) {
  check(shape, blocks);
  if (shape.batch == 0) return 0;
  const Sampled read = pass == ConvPass::forward ? sampled(shape, from) : Sampled{shape, from};
  return correlate(*path.kernels, ConvPlan(read.shape, pass, blocks), read.x, rounding, weights, to, bias);
}

}  // namespace

ConvPlan::ConvPlan(const ConvShape& s, ConvPass p, const GemmBlocks& blocks)
    : shape(s),
      pass(p),
      from_channels((p == ConvPass::forward ? s.in_channels : s.out_channels) / s.groups),
      to_channels((p == ConvPass::forward ? s.out_channels : s.in_channels) / s.groups) {
  const int64_t padded = divide_up(from_channels, kPadK) * kPadK;
  int64_t block = blocks.block;
  while (padded % block) block /= 2;
  record = {blocks.grid, block, padded / block};
}

Correlation ConvPlan::part(int64_t y, int64_t x) const {
  const ConvShape& s = shape;
  if (pass == ConvPass::forward)
    return {forward_axis(s.height, s.out_height(), s.kernel_h, s.stride_h, s.padding_h, s.dilation_h),
            forward_axis(s.width, s.out_width(), s.kernel_w, s.stride_w, s.padding_w, s.dilation_w)};
  return {gradient_axis(s.out_height(), s.height, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h, y),
          gradient_axis(s.out_width(), s.width, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w, x)};
}

bool ConvPlan::some_empty() const {
  for (int64_t y = 0; y < parts_y(); ++y)
    for (int64_t x = 0; x < parts_x(); ++x)
      if (part(y, x).empty()) return true;
  return false;
}

int64_t ConvPlan::weights(int64_t y, int64_t x, int64_t group) const {
  int64_t bytes = 0;
  for (int64_t i = 0; i < y * parts_x() + x; ++i)
    bytes += shape.groups * weight_bytes(part(i / parts_x(), i % parts_x()));
  return bytes + (group == 0 ? 0 : group * weight_bytes(part(y, x)));
}

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
        float* copy = reinterpret_cast<float*>(scratch(Scratch::output, rows * stride * 4));
        copy_rows(plan, c, w, group, row, rows, copy, stride);
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

int64_t conv_forward(const GemmPath& path, const ConvShape& shape, const ConstImages& x, const PackRounding& rounding,
                     const void* packed_weights, const GemmBlocks& blocks, const Images& y, const float* bias) {
  return run(path, shape, ConvPass::forward, x, rounding, packed_weights, blocks, y, bias);
}

int64_t conv_input_gradient(const GemmPath& path, const ConvShape& shape, const ConstImages& dy,
                            const PackRounding& rounding, const void* packed_weights, const GemmBlocks& blocks,
                            const Images& dx) {
  return run(path, shape, ConvPass::input_gradient, dy, rounding, packed_weights, blocks, dx, nullptr);
}

}  // namespace hpqf::kernels
