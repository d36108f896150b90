// Images are quantised into records (conv_kernels.h) a few at a time, so that they stay in the second-level cache while
// panels of im2col are copied from them. Of these, some stay in the cache together and one at a time in the first
// level, while the packed weights pass by: the order of driver.cc with the sides exchanged.
#include "hpqf/kernels/gemm/correlation.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/conv_records.h"
#include "hpqf/kernels/gemm/driver.h"
#include "hpqf/kernels/gemm/path.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

constexpr int64_t kRecordBytes = 256 << 10;  // of images at a time: half of a 512 KiB second-level cache
constexpr int64_t kPanelBytes = 16 << 10;    // of one panel at a time: half of a 32 KiB first-level cache
constexpr int64_t kWeightBytes = 128 << 10;  // that pass by the panels in turn
constexpr int64_t kUnit = 128;               // positions that share a pass of the weights
constexpr float kZeros[kMostPanelsB * kPanelB] = {};

// A body is passed by reference: std::function would copy what it captures to the heap.
template <class Body>
void each(bool parallel, int64_t count, int64_t grain, Body body) {
  if (count == 0) return;
  parallel ? base::parallel_for(0, count, grain, std::ref(body)) : body(0, count);
}

struct Call {
  const PathKernels& path;
  const ConvPlan& plan;
  const ConstImages& from;
  const PackRounding& rounding;
  const char* weights;
  const Images& to;
  const float* bias;
  const Frame frame;
};

// Images whose records are in memory, one group of channels.
struct Chunk {
  const char* records;
  int64_t group, first, images;
};

// The parts of a pass that write the same rows of an image: side by side in columns, so that whole lines are written.
class RowParts {
 public:
  RowParts(const Call& call, const Chunk& chunk, int64_t y)
      : call_(call),
        path_(call.path),
        plan_(call.plan),
        chunk_(chunk),
        part_y_(y),
        first_(call.plan.part(y, 0)),
        planes_(call.to.layout == ImageLayout::channels_first),
        channel_stride_(planes_ ? first_.y.out * first_.x.out : 1),
        rows_(plan_.panels_a() * kPanelA) {}

  int64_t units() const { return first_.y.empty() ? 0 : divide_up(chunk_.images * first_.positions(), kUnit); }

  void unit(int64_t index) const {
    Places places;
    find(index, places);
    float* buffer = reinterpret_cast<float*>(scratch(Scratch::output, plan_.parts_x() * rows_ * kUnit * 4));
    for (int64_t x = 0; x < plan_.parts_x(); ++x) {
      const Correlation c = part(x);
      if (!c.empty())
        Product{*this, c, plan_.weights(part_y_, x, chunk_.group), places}.run(buffer + x * rows_ * kUnit);
    }
    for (int64_t p = 0; p < places.panels(); p += path_.panels_b) {
      const int64_t n = std::min<int64_t>(path_.panels_b, places.panels() - p);
      if (!in_place(places, p, n)) store(places, p, n, buffer + p * kPanelB * rows_);
    }
  }

 private:
  Correlation part(int64_t x) const { return x == 0 ? first_ : plan_.part(part_y_, x); }

  // Where positions are read and written, by the part of the first column.
  struct Places {
    const char* from[kUnit];
    float* to[kUnit];
    int64_t column[kUnit];
    int64_t count;  // those beyond repeat the last
    int64_t panels() const { return divide_up(count, kPanelB); }
  };

  void find(int64_t unit, Places& places) const {
    const Axis &ay = first_.y, &ax = first_.x;
    const int64_t begin = unit * kUnit;
    places.count = std::min(kUnit, chunk_.images * first_.positions() - begin);
    const int64_t channels = plan_.to_channels, all = channels * plan_.shape.groups, pixels = ay.out * ax.out;
    const int64_t pixel_stride = planes_ ? 1 : all, record_step = call_.frame.move(0, ax.step);
    int64_t n = begin / first_.positions(), y = begin % first_.positions() / ax.grid, x = begin % ax.grid;
    for (int64_t i = 0; i < kUnit;) {  // row by row
      const char* from = chunk_.records + n * call_.frame.image_bytes + call_.frame.distance(y * ay.step, x * ax.step);
      float* to = call_.to.data + (chunk_.first + n) * pixels * all + chunk_.group * channels * (planes_ ? pixels : 1) +
                  ((ay.origin + y * ay.spacing) * ax.out + ax.origin + x * ax.spacing) * pixel_stride;
      for (; x < ax.grid && i < places.count; ++x, ++i) {
        places.from[i] = from, places.to[i] = to, places.column[i] = x;
        from += record_step;
        to += ax.spacing * pixel_stride;
      }
      x = 0;
      if (++y == ay.grid) y = 0, ++n;
      for (; i >= places.count && i < kUnit; ++i) places.from[i] = places.from[i - 1];
    }
  }

  // Whether whole tiles can be written where they belong: the positions lie side by side.
  bool in_place(const Places& places, int64_t p, int64_t n) const {
    const int64_t begin = p * kPanelB, end = begin + n * kPanelB;
    return planes_ && plan_.parts_x() == 1 && plan_.to_channels % kPanelA == 0 && end <= places.count &&
           places.to[end - 1] - places.to[begin] == end - 1 - begin;
  }

  // One part at the positions of a unit.
  struct Product {
    const RowParts& parts;
    const Correlation& c;
    const int64_t weight_offset;
    const Places& places;

    void run(float* buffer) const {
      const BlockGrid grid = parts.plan_.grid(c);
      const int64_t block_bytes = grid.b_bytes(grid.block), line = grid.block * lane_bytes(grid.grid);
      const int64_t chunk = std::clamp<int64_t>(kPanelBytes / (line * kPanelB), 1, grid.count());
      const int64_t panels = places.panels(), panels_a = parts.plan_.panels_a(), panels_b = parts.path_.panels_b;
      char* packed = scratch(Scratch::panels, panels * chunk * block_bytes);
      for (int64_t b0 = 0; b0 < grid.count(); b0 += chunk) {
        const int64_t b1 = std::min(b0 + chunk, grid.count());
        for (int64_t p = 0; p < panels; ++p)
          gather(grid, places.from + p * kPanelB, b0, b1, packed + p * chunk * block_bytes);
        const int64_t step = std::max<int64_t>(1, kWeightBytes / grid.a_panel_bytes(b0, b1) / parts.path_.panels_a) *
                             parts.path_.panels_a;
        for (int64_t i = 0; i < panels_a; i += step)
          for (int64_t p = 0; p < panels; p += panels_b)
            multiply(grid, p, std::min(panels_b, panels - p), i, std::min(i + step, panels_a), b0, b1,
                     packed + p * chunk * block_bytes, chunk * block_bytes, buffer + p * kPanelB * parts.rows_);
      }
    }

    // Blocks b0 .. b1 - 1 of a panel of 16 positions.
    void gather(const BlockGrid& grid, const char* const* from, int64_t b0, int64_t b1, char* panel) const {
      const RecordLayout& record = parts.plan_.record;
      for (int64_t b = b0; b < b1;) {
        const int64_t tap = b / record.blocks, end = std::min(b1, (tap + 1) * record.blocks);
        const int64_t y = c.y.offset + tap / c.x.taps * c.y.advance, x = c.x.offset + tap % c.x.taps * c.x.advance;
        parts.path_.conv->gather(record, from, parts.call_.frame.move(y, x), b - tap * record.blocks,
                                 end - tap * record.blocks, panel);
        panel += (end - b) * grid.b_bytes(grid.block);
        b = end;
      }
    }

    void multiply(const BlockGrid& grid, int64_t p, int64_t nb, int64_t i0, int64_t i1, int64_t b0, int64_t b1,
                  const char* packed, int64_t panel_bytes, float* buffer) const {
      const bool in_place = parts.in_place(places, p, nb);
      const int64_t stride = in_place ? parts.channel_stride_ : nb * kPanelB;
      float* to = in_place ? places.to[p * kPanelB] : buffer;
      alignas(64) float start[kMostPanelsA * kPanelA * kMostPanelsB * kPanelB];
      TileJob job{};
      job.a_panel = parts.plan_.panel_bytes(c);
      job.b_panel = panel_bytes;
      job.a_block = grid.a_bytes(grid.block);
      job.b_block = grid.b_bytes(grid.block);
      job.blocks = b1 - b0;
      job.k = job.k_last = grid.block;
      job.b = packed;
      job.c_stride = stride;
      const auto tile = grid.grid == Grid::int8 ? parts.path_.tile8 : parts.path_.tile12;
      const bool biased = parts.call_.bias;
      for (int64_t i = i0; i < i1; i += parts.path_.panels_a) {
        const int na = int(std::min<int64_t>(parts.path_.panels_a, i1 - i));
        job.a = parts.call_.weights + weight_offset + i * job.a_panel + b0 * job.a_block;
        job.c = to + i * kPanelA * stride;
        job.init = b0 > 0 ? job.c : biased ? start : kZeros;
        job.init_stride = b0 > 0 ? stride : biased ? nb * kPanelB : 0;
        if (b0 == 0 && biased)
          for (int64_t r = 0; r < na * kPanelA; ++r)
            std::fill_n(start + r * nb * kPanelB, nb * kPanelB, parts.bias(i * kPanelA + r));
        if (b0 == 0 && in_place)  // the next rows are far away
          for (int64_t r = 0; r < na * kPanelA && i + na < i1; ++r)
            for (int64_t q = 0; q < nb; ++q)
              __builtin_prefetch(job.c + (na * kPanelA + r) * stride + q * kPanelB, 1, 3);
        if (!parts.planes_ && b1 == grid.count()) parts.prefetch(places, p, nb, i, na);
        tile(job, na, int(nb));
      }
    }
  };

  // The lines of pixels that rows i .. i + n of panels of A will be stored to, a few with each tile: a line holds
  // sixteen channels, four panels.
  void prefetch(const Places& places, int64_t p, int64_t nb, int64_t i, int64_t n) const {
    for (; n > 0; --n, ++i)
      for (int64_t j = i % 4; j < nb * kPanelB && p * kPanelB + j < places.count; j += 4)
        __builtin_prefetch(places.to[p * kPanelB + j] + i / 4 * 16, 1, 2);
  }

  float bias(int64_t row) const {
    return row < plan_.to_channels ? call_.bias[chunk_.group * plan_.to_channels + row] : 0;
  }

  // From the tiles' buffers to where the positions lie: n panels from p on; `buffer` is that of the first part.
  void store(const Places& places, int64_t p, int64_t n, const float* buffer) const {
    const int64_t begin = p * kPanelB, end = std::min(begin + n * kPanelB, places.count), columns = n * kPanelB;
    if (!planes_) {
      for (int64_t x = 0; x < plan_.parts_x(); ++x)
        if (const Correlation c = part(x); !c.empty())
          for (int64_t q = 0; q < n; ++q)
            store_pixels(places, c, begin + q * kPanelB, end, buffer + x * rows_ * kUnit + q * kPanelB, columns);
      return;
    }
    for (int64_t i = begin; i < end;) {  // runs a constant distance apart
      int64_t last = i + 1;
      while (last < end && places.to[last] - places.to[last - 1] == first_.x.spacing) ++last;
      store_run(places, i, last - i, buffer + i - begin, columns);
      i = last;
    }
  }

  void store_pixels(const Places& places, const Correlation& c, int64_t begin, int64_t end, const float* from,
                    int64_t columns) const {
    float* unused = reinterpret_cast<float*>(scratch(Scratch::strips, plan_.to_channels * 4));
    float* to[kPanelB];
    const int64_t move = (c.x.origin - first_.x.origin) * plan_.to_channels * plan_.shape.groups;
    for (int64_t i = 0; i < kPanelB; ++i)
      to[i] = begin + i < end && places.column[begin + i] < c.x.grid ? places.to[begin + i] + move : unused;
    path_.conv->store_columns(from, columns, plan_.to_channels, to);
  }

  void store_run(const Places& places, int64_t begin, int64_t count, const float* from, int64_t columns) const {
    float* to = places.to[begin];
    const int64_t rows = plan_.to_channels, spacing = first_.x.spacing;
    const Correlation second = part(plan_.parts_x() - 1);
    // The part of the last column may have one position less in a row of the image.
    const bool whole = places.column[begin + count - 1] < second.x.grid;
    if (spacing == 1) {
      for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * channel_stride_, from + r * columns, size_t(count) * 4);
    } else if (spacing == 2 && whole && !first_.empty() && !second.empty()) {
      for (int64_t r = 0; r < rows; ++r) {
        const float *x = from + r * columns, *y = x + rows_ * kUnit;
        float* line = to + r * channel_stride_;
        for (int64_t i = 0; i < count; ++i) line[2 * i] = x[i], line[2 * i + 1] = y[i];
      }
    } else {
      for (int64_t x = 0; x < plan_.parts_x(); ++x) {
        const Correlation c = part(x);
        if (c.empty()) continue;
        const int64_t kept = count - (places.column[begin + count - 1] >= c.x.grid);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t i = 0; i < kept; ++i)
            to[r * channel_stride_ + i * spacing + x] = from[x * rows_ * kUnit + r * columns + i];
      }
    }
  }

  const Call& call_;
  const PathKernels& path_;
  const ConvPlan& plan_;
  const Chunk& chunk_;
  const int64_t part_y_;
  const Correlation first_;
  const bool planes_;  // channels first
  const int64_t channel_stride_, rows_;
};

// Images first .. last - 1. Within them in parallel if `inner`.
int64_t run(const Call& call, int64_t first, int64_t last, bool inner) {
  const Frame& frame = call.frame;
  const ConvPlan& plan = call.plan;
  const int64_t at_once = std::clamp<int64_t>(kRecordBytes / frame.image_bytes, 1, last - first);
  // Behind the images: a record for what is not kept, and those that positions beyond a row may read.
  const int64_t images_bytes = at_once * frame.image_bytes;
  char* records = scratch(Scratch::records, images_bytes + frame.record_bytes + frame.move(0, 2));
  for (int64_t n = 0; n < at_once; ++n) frame.clear_border(records + n * frame.image_bytes);
  // Positions that no tap meets: a gradient whose stride is larger than the kernel.
  const bool zeros = plan.some_empty();
  const int64_t to_image = plan.shape.in_channels * plan.shape.height * plan.shape.width;
  std::atomic<int64_t> bad{0};
  const int64_t pieces = divide_up(frame.in_h * frame.in_w, kPiece);
  for (int64_t group = 0; group < plan.shape.groups; ++group)
    for (int64_t n = first; n < last; n += at_once) {
      const Chunk chunk{records, group, n, std::min(at_once, last - n)};
      each(inner, chunk.images * pieces, 4, [&](int64_t p0, int64_t p1) {
        int64_t here = 0;
        for (int64_t p = p0; p < p1; ++p)
          here +=
              quantise_pixels(call.path, plan, frame, call.from, call.rounding, group, n + p / pieces,
                              p % pieces * kPiece, records + p / pieces * frame.image_bytes, records + images_bytes);
        bad += here;
      });
      if (zeros && group == 0) std::memset(call.to.data + n * to_image, 0, size_t(chunk.images * to_image) * 4);
      for (int64_t y = 0; y < plan.parts_y(); ++y) {
        const RowParts parts(call, chunk, y);
        each(inner, parts.units(), 1, [&](int64_t u0, int64_t u1) {
          for (int64_t u = u0; u < u1; ++u) parts.unit(u);
        });
      }
    }
  return bad;
}

}  // namespace

int64_t correlate(const PathKernels& path, const ConvPlan& plan, const ConstImages& from, const PackRounding& rounding,
                  const void* packed_weights, const Images& to, const float* bias) {
  const ConvShape& s = plan.shape;
  const Call call{path, plan, from, rounding, static_cast<const char*>(packed_weights), to, bias, Frame(plan)};
  const int64_t work =  // multiply-adds of an image
      s.out_height() * s.out_width() * s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w;
  if (s.batch < 4) return run(call, 0, s.batch, s.batch * work > kSerialWork);
  const int64_t grain = std::max<int64_t>(1, kSerialWork / work);
  std::atomic<int64_t> bad{0};
  each(true, s.batch, grain, [&](int64_t first, int64_t last) { bad += run(call, first, last, false); });
  return bad;
}

}  // namespace hpqf::kernels
