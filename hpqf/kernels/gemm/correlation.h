// Forward and input gradient are the same computation: images correlated with packed weights. What differs is which
// taps meet (conv_axis.h), and that a strided gradient is several correlations which read the same images.
#pragma once
#include "hpqf/kernels/gemm/conv_axis.h"
#include "hpqf/kernels/gemm/conv_kernels.h"
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::kernels {

struct Correlation {
  Axis y, x;
  int64_t taps() const { return y.taps * x.taps; }
  int64_t positions() const { return y.grid * x.grid; }
  bool empty() const { return y.empty() || x.empty(); }
};

// All correlations of one pass, part by part.
struct ConvPlan {
  ConvShape shape;
  ConvPass pass;
  RecordLayout record;
  int64_t from_channels, to_channels;  // of one group: read, written

  ConvPlan(const ConvShape& shape, ConvPass pass, const GemmBlocks& blocks);
  // Parts write every parts_y()-th row and parts_x()-th column.
  int64_t parts_y() const { return pass == ConvPass::forward ? 1 : shape.stride_h; }
  int64_t parts_x() const { return pass == ConvPass::forward ? 1 : shape.stride_w; }
  Correlation part(int64_t y, int64_t x) const;
  bool some_empty() const;
  // The contraction: taps in order of rows, the padded channels of each.
  BlockGrid grid(const Correlation& c) const {
    return {record.grid, c.taps() * record.blocks * record.block, record.block};
  }
  int64_t panels_a() const { return divide_up(to_channels, kPanelA); }
  int64_t panel_bytes(const Correlation& c) const {
    const BlockGrid g = grid(c);
    return g.a_panel_bytes(0, g.count());
  }
  // Packed weights lie part by part, group by group.
  int64_t weight_bytes(const Correlation& c) const { return divide_up(panels_a() * panel_bytes(c), 64) * 64; }
  int64_t weights(int64_t y, int64_t x, int64_t group) const;  // where they begin
};

int64_t correlate(const PathKernels& path, const ConvPlan& plan, const ConstImages& from, const PackRounding& rounding,
                  const void* packed_weights, const Images& to, const float* bias);

// A seed for piece `i` of an operand that is packed in pieces.
constexpr PackRounding piece_rounding(const PackRounding& r, int64_t i) {
  return {r.rounding, r.seed + 0x9E3779B97F4A7C15u * uint64_t(i + 1)};
}

}  // namespace hpqf::kernels
