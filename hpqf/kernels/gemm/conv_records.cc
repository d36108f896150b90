#include "hpqf/kernels/gemm/conv_records.h"

#include <algorithm>
#include <cstring>

#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {

Frame::Frame(const ConvPlan& plan) : record_bytes(plan.record.bytes()) {
  int64_t high_y = 0, high_x = 0;
  for (int64_t y = 0; y < plan.parts_y(); ++y)
    for (int64_t x = 0; x < plan.parts_x(); ++x) {
      const Correlation c = plan.part(y, x);
      if (c.empty()) continue;
      low_y_ = std::max(low_y_, -c.y.lowest());
      low_x_ = std::max(low_x_, -c.x.lowest());
      high_y = std::max(high_y, c.y.highest() - (c.y.in - 1));
      high_x = std::max(high_x, c.x.highest() - (c.x.in - 1));
    }
  const Correlation first = plan.part(0, 0);
  in_h = first.y.in;
  in_w = first.x.in;
  height_ = low_y_ + in_h + high_y;
  width_ = low_x_ + in_w + high_x;
  image_bytes = height_ * width_ * record_bytes;
}

void Frame::clear_border(char* image) const {
  auto clear = [&](int64_t first, int64_t count) {
    std::memset(image + first * record_bytes, 0, size_t(count * record_bytes));
  };
  const int64_t below = low_y_ + in_h, right = low_x_ + in_w;
  clear(0, low_y_ * width_);
  for (int64_t y = low_y_; y < below; ++y) {
    clear(y * width_, low_x_);
    clear(y * width_ + right, width_ - right);
  }
  clear(below * width_, (height_ - below) * width_);
}

int64_t quantise_pixels(const PathKernels& path, const ConvPlan& plan, const Frame& frame, const ConstImages& from,
                        const PackRounding& rounding, int64_t group, int64_t n, int64_t pixel, char* image,
                        char* unused) {
  const int64_t pixels = frame.in_h * frame.in_w, count = std::min(kPiece, pixels - pixel);
  const int64_t channels = plan.from_channels, all = channels * plan.shape.groups;
  const float* data = from.data + n * pixels * all;
  const MatrixView view = from.layout == ImageLayout::channels_first
                              ? MatrixView{data + group * channels * pixels + pixel, count, channels, pixels, true}
                              : MatrixView{data + pixel * all + group * channels, count, channels, all, false};
  const int64_t index = (group * plan.shape.batch + n) * divide_up(pixels, kPiece) + pixel / kPiece;
  const PackJob job{view,
                    {plan.record.grid, channels, plan.record.block},
                    plan.record.grid == Grid::int8 ? path.b8 : path.b12,
                    piece_rounding(rounding, index)};
  const int64_t panels = divide_up(count, kPanelB), panel_bytes = job.blocks.b_panel_bytes();
  char* packed = scratch(Scratch::panels, panels * panel_bytes);
  const int64_t bad = path.pack_b(job, 0, panels, packed);
  int64_t y = pixel / frame.in_w, x = pixel % frame.in_w;
  char* place = image + frame.distance(y, x);
  for (int64_t p = 0; p < panels; ++p) {
    char* to[kPanelB];
    for (int64_t i = 0; i < kPanelB; ++i) {
      to[i] = p * kPanelB + i < count ? place : unused;
      place += frame.record_bytes;
      if (++x == frame.in_w) x = 0, place = image + frame.distance(++y, 0);
    }
    path.conv->spread(plan.record, packed + p * panel_bytes, to);
  }
  return bad;
}

}  // namespace hpqf::kernels
