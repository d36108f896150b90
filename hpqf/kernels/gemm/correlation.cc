// Images are quantised into records (conv_kernels.h) a few at a time, so that they stay in the second-level cache while
// panels of im2col are copied from them. Of these, some stay in the cache together and one at a time in the first
// level, while the packed weights pass by: the order of driver.cc with the sides exchanged.
#include "hpqf/kernels/gemm/correlation.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/path.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

constexpr int64_t kRecordBytes = 256 << 10;  // of images at a time: half of a 512 KiB second-level cache
constexpr int64_t kPanelBytes = 16 << 10;    // of one panel at a time: half of a 32 KiB first-level cache
constexpr int64_t kWeightBytes = 128 << 10;  // that pass by the panels in turn
constexpr int64_t kPanels = 8;               // of 16 positions that share a pass of the weights
constexpr int64_t kPiece = 128;              // pixels quantised together: the strips of one k-major copy (pack_avx2.cc)
constexpr int64_t kSerialWork = 1 << 18;     // multiply-adds (about 3 us) not worth waking threads
constexpr float kZeros[kMostPanelsB * kPanelB] = {};

void each(bool parallel, int64_t count, int64_t grain, const base::RangeBody& body) {
  if (count == 0) return;
  parallel ? base::parallel_for(0, count, grain, body) : body(0, count);
}

// Border and strides of the images' records.
struct Frame {
  int64_t in_h, in_w;  // of the image
  int64_t low_y = 0, low_x = 0, height, width;
  Frame(const ConvPlan& plan) {
    int64_t high_y = 0, high_x = 0;
    const Correlation first = plan.part(0);
    for (int64_t i = 0; i < plan.parts(); ++i) {
      const Correlation c = plan.part(i);
      if (c.empty()) continue;
      low_y = std::max(low_y, -c.y.lowest());
      low_x = std::max(low_x, -c.x.lowest());
      high_y = std::max(high_y, c.y.highest() - (c.y.in - 1));
      high_x = std::max(high_x, c.x.highest() - (c.x.in - 1));
    }
    in_h = first.y.in;
    in_w = first.x.in;
    height = low_y + in_h + high_y;
    width = low_x + in_w + high_x;
  }
  int64_t place(int64_t y, int64_t x) const { return (y + low_y) * width + x + low_x; }
};

class Worker {
 public:
  Worker(const PathKernels& path, const ConvPlan& plan, const ConstImages& from, const PackRounding& rounding,
         const char* weights, const Images& to, const float* bias)
      : path_(path),
        plan_(plan),
        from_(from),
        rounding_(rounding),
        weights_(weights),
        to_(to),
        bias_(bias),
        frame_(plan),
        record_bytes_(plan.record.bytes()),
        image_bytes_(frame_.height * frame_.width * record_bytes_) {}

  // Images first .. last - 1. Within them in parallel if `inner`.
  int64_t run(int64_t first, int64_t last, bool inner) const {
    const int64_t at_once = std::clamp<int64_t>(kRecordBytes / image_bytes_, 1, last - first);
    char* records = scratch(Scratch::records, at_once * image_bytes_ + record_bytes_);
    clear_borders(records, at_once);
    if (plan_.some_empty()) {  // positions that no tap meets: a gradient whose stride is larger than the kernel
      const ConvShape& s = plan_.shape;
      const int64_t image = s.in_channels * s.height * s.width;
      std::memset(to_.data + first * image, 0, size_t((last - first) * image) * 4);
    }
    std::atomic<int64_t> bad{0};
    for (int64_t group = 0; group < plan_.shape.groups; ++group)
      for (int64_t n = first; n < last; n += at_once) {
        const int64_t count = std::min(at_once, last - n);
        const int64_t pieces = divide_up(frame_.in_h * frame_.in_w, kPiece);
        each(inner, count * pieces, 4, [&](int64_t p0, int64_t p1) {
          int64_t here = 0;
          for (int64_t p = p0; p < p1; ++p)
            here += quantise(group, n + p / pieces, p % pieces * kPiece, records + p / pieces * image_bytes_,
                             records + at_once * image_bytes_);
          bad += here;
        });
        const char* w = weights_;
        for (int64_t i = 0; i < plan_.parts(); ++i) {
          const Correlation c = plan_.part(i);
          const char* mine = w + group * plan_.weight_bytes(c);
          if (!c.empty()) {
            const int64_t units = divide_up(count * c.y.grid * c.x.grid, kPanels * kPanelB);
            each(inner, units, 1, [&](int64_t u0, int64_t u1) {
              for (int64_t u = u0; u < u1; ++u) Part(*this, c, mine, group, n, count, records).unit(u);
            });
          }
          w += plan_.shape.groups * plan_.weight_bytes(c);
        }
      }
    return bad;
  }

 private:
  void clear_borders(char* records, int64_t images) const {
    auto clear = [&](int64_t n, int64_t first, int64_t count) {
      std::memset(records + n * image_bytes_ + first * record_bytes_, 0, size_t(count * record_bytes_));
    };
    const int64_t w = frame_.width, below = frame_.low_y + frame_.in_h, right = frame_.low_x + frame_.in_w;
    for (int64_t n = 0; n < images; ++n) {
      clear(n, 0, frame_.low_y * w);
      for (int64_t y = frame_.low_y; y < below; ++y) {
        clear(n, y * w, frame_.low_x);
        clear(n, y * w + right, w - right);
      }
      clear(n, below * w, (frame_.height - below) * w);
    }
  }

  // Up to kPiece pixels of one image, from `pixel` on.
  int64_t quantise(int64_t group, int64_t n, int64_t pixel, char* image, char* unused) const {
    const int64_t pixels = frame_.in_h * frame_.in_w, count = std::min(kPiece, pixels - pixel);
    const int64_t channels = plan_.from_channels, all = channels * plan_.shape.groups;
    const bool planes = from_.layout == ImageLayout::channels_first;
    const float* data = from_.data + n * pixels * all;
    const MatrixView view = planes ? MatrixView{data + group * channels * pixels + pixel, count, channels, pixels, true}
                                   : MatrixView{data + pixel * all + group * channels, count, channels, all, false};
    const CodeRule& rule = plan_.record.grid == Grid::int8 ? path_.b8 : path_.b12;
    const int64_t index = (group * plan_.shape.batch + n) * divide_up(pixels, kPiece) + pixel / kPiece;
    const PackJob job{view, {plan_.record.grid, channels, plan_.record.block}, rule, piece_rounding(rounding_, index)};
    const int64_t panels = divide_up(count, kPanelB), panel_bytes = job.blocks.b_panel_bytes();
    char* packed = scratch(Scratch::panels, panels * panel_bytes);
    const int64_t bad = path_.pack_b(job, 0, panels, packed);
    int64_t y = pixel / frame_.in_w, x = pixel % frame_.in_w;
    for (int64_t p = 0; p < panels; ++p) {
      char* to[kPanelB];
      for (int64_t i = 0; i < kPanelB; ++i) {
        to[i] = p * kPanelB + i < count ? image + frame_.place(y, x) * record_bytes_ : unused;
        if (++x == frame_.in_w) x = 0, ++y;
      }
      path_.conv->spread(plan_.record, packed + p * panel_bytes, to);
    }
    return bad;
  }

  // One correlation of one group over some images.
  struct Part {
    const Worker& worker;
    const Correlation& c;
    const char* weights;
    int64_t group, first_image, images;
    const char* records;
    const BlockGrid grid;
    const bool planes;             // channels first
    const int64_t channel_stride;  // in the images that are written
    const int64_t tile_columns;    // of the widest tile
    Part(const Worker& w, const Correlation& correlation, const char* packed, int64_t g, int64_t n, int64_t count,
         const char* quantised)
        : worker(w),
          c(correlation),
          weights(packed),
          group(g),
          first_image(n),
          images(count),
          records(quantised),
          grid(w.plan_.grid(c)),
          planes(w.to_.layout == ImageLayout::channels_first),
          channel_stride(planes ? c.y.out * c.x.out : 1),
          tile_columns(w.path_.panels_b * kPanelB) {}

    // Where the positions of a unit are read and written.
    struct Places {
      const char* from[kPanels * kPanelB];
      float* to[kPanels * kPanelB];
      int64_t count;  // those beyond repeat the last
    };

    void find(int64_t unit, Places& places) const {
      const int64_t size = c.y.grid * c.x.grid, begin = unit * kPanels * kPanelB;
      places.count = std::min(kPanels * kPanelB, images * size - begin);
      const int64_t channels = worker.plan_.to_channels, all = channels * worker.plan_.shape.groups;
      const int64_t pixels = c.y.out * c.x.out, pixel_stride = planes ? 1 : all;
      int64_t n = begin / size, y = begin % size / c.x.grid, x = begin % c.x.grid;
      for (int64_t i = 0; i < kPanels * kPanelB; ++i) {
        places.from[i] =
            records + n * worker.image_bytes_ + worker.frame_.place(y * c.y.step, x * c.x.step) * worker.record_bytes_;
        places.to[i] = worker.to_.data + (first_image + n) * pixels * all + group * channels * (planes ? pixels : 1) +
                       ((c.y.origin + y * c.y.spacing) * c.x.out + c.x.origin + x * c.x.spacing) * pixel_stride;
        if (i + 1 >= places.count) continue;
        if (++x == c.x.grid) {
          x = 0;
          if (++y == c.y.grid) y = 0, ++n;
        }
      }
    }

    void unit(int64_t unit) const {
      Places places;
      find(unit, places);
      const PathKernels& path = worker.path_;
      const int64_t rows = worker.plan_.panels_a() * kPanelA, block_bytes = grid.b_bytes(grid.block);
      const int64_t chunk =
          std::clamp<int64_t>(kPanelBytes / (grid.block * lane_bytes(grid.grid) * kPanelB), 1, grid.count());
      const int64_t panels = divide_up(places.count, kPanelB);
      char* packed = scratch(Scratch::panels, panels * chunk * block_bytes);
      float* buffer = reinterpret_cast<float*>(scratch(Scratch::output, rows * kPanels * kPanelB * 4));
      for (int64_t b0 = 0; b0 < grid.count(); b0 += chunk) {
        const int64_t b1 = std::min(b0 + chunk, grid.count());
        for (int64_t p = 0; p < panels; ++p)
          gather(places.from + p * kPanelB, b0, b1, packed + p * chunk * block_bytes);
        const int64_t group_a =
            std::max<int64_t>(path.panels_a, kWeightBytes / grid.a_panel_bytes(b0, b1) / path.panels_a * path.panels_a);
        for (int64_t i = 0; i < worker.plan_.panels_a(); i += group_a)
          for (int64_t p = 0; p < panels; p += path.panels_b)
            multiply(places, p, std::min<int64_t>(path.panels_b, panels - p), i,
                     std::min(i + group_a, worker.plan_.panels_a()), b0, b1, packed + p * chunk * block_bytes,
                     chunk * block_bytes, buffer + p * kPanelB * rows);
      }
      for (int64_t p = 0; p < panels; p += path.panels_b)
        if (const int64_t n = std::min<int64_t>(path.panels_b, panels - p); !direct(places, p, n))
          store(places, p, n, buffer + p * kPanelB * rows);
    }

    // Blocks b0 .. b1 - 1 of a panel of 16 positions.
    void gather(const char* const* from, int64_t b0, int64_t b1, char* panel) const {
      const int64_t each_tap = worker.plan_.record.blocks;
      for (int64_t b = b0; b < b1;) {
        const int64_t tap = b / each_tap, end = std::min(b1, (tap + 1) * each_tap);
        const int64_t y = c.y.offset + tap / c.x.taps * c.y.advance, x = c.x.offset + tap % c.x.taps * c.x.advance;
        worker.path_.conv->gather(worker.plan_.record, from, (y * worker.frame_.width + x) * worker.record_bytes_,
                                  b - tap * each_tap, end - tap * each_tap, panel);
        panel += (end - b) * grid.b_bytes(grid.block);
        b = end;
      }
    }

    // Whether whole tiles can be written where they belong: the positions lie side by side.
    bool direct(const Places& places, int64_t p, int64_t n) const {
      const int64_t begin = p * kPanelB, end = begin + n * kPanelB;
      return planes && worker.plan_.to_channels % kPanelA == 0 && end <= places.count &&
             places.to[end - 1] - places.to[begin] == end - 1 - begin;
    }

    void multiply(const Places& places, int64_t p, int64_t nb, int64_t i0, int64_t i1, int64_t b0, int64_t b1,
                  const char* packed, int64_t panel_bytes, float* buffer) const {
      const PathKernels& path = worker.path_;
      const bool in_place = direct(places, p, nb);
      const int64_t stride = in_place ? channel_stride : nb * kPanelB;
      float* to = in_place ? places.to[p * kPanelB] : buffer;
      alignas(64) float start[kMostPanelsA * kPanelA * kMostPanelsB * kPanelB];
      TileJob job{};
      job.a_panel = worker.plan_.panel_bytes(c);
      job.b_panel = panel_bytes;
      job.a_block = grid.a_bytes(grid.block);
      job.b_block = grid.b_bytes(grid.block);
      job.blocks = b1 - b0;
      job.k = job.k_last = grid.block;
      job.b = packed;
      job.c_stride = stride;
      const auto tile = grid.grid == Grid::int8 ? path.tile8 : path.tile12;
      for (int64_t i = i0; i < i1; i += path.panels_a) {
        const int na = int(std::min<int64_t>(path.panels_a, i1 - i));
        job.a = weights + i * job.a_panel + b0 * job.a_block;
        job.c = to + i * kPanelA * stride;
        job.init = b0 > 0 ? job.c : worker.bias_ ? start : kZeros;
        job.init_stride = b0 > 0 ? stride : worker.bias_ ? nb * kPanelB : 0;
        if (b0 == 0 && worker.bias_) fill_bias(i * kPanelA, na * kPanelA, nb * kPanelB, start);
        if (in_place && b0 == 0)  // the next rows of C are far away
          for (int64_t r = 0; r < na * kPanelA && i + na < i1; ++r)
            for (int64_t q = 0; q < nb; ++q)
              __builtin_prefetch(job.c + (na * kPanelA + r) * stride + q * kPanelB, 1, 3);
        tile(job, na, int(nb));
      }
    }

    float bias(int64_t row) const {
      const int64_t channels = worker.plan_.to_channels;
      return worker.bias_ && row < channels ? worker.bias_[group * channels + row] : 0;
    }
    void fill_bias(int64_t first, int64_t rows, int64_t columns, float* start) const {
      for (int64_t r = 0; r < rows; ++r) std::fill_n(start + r * columns, columns, bias(first + r));
    }

    // From the tiles' buffer to where the positions lie.
    void store(const Places& places, int64_t p, int64_t n, const float* buffer) const {
      const int64_t begin = p * kPanelB, end = std::min(begin + n * kPanelB, places.count), columns = n * kPanelB;
      const int64_t rows = worker.plan_.to_channels;
      if (!planes) {
        float* unused = reinterpret_cast<float*>(scratch(Scratch::strips, rows * 4));
        for (int64_t q = 0; q < n; ++q) {
          float* to[kPanelB];
          for (int64_t i = 0; i < kPanelB; ++i) {
            const int64_t at = begin + q * kPanelB + i;
            to[i] = at < end ? places.to[at] : unused;
          }
          worker.path_.conv->store_columns(buffer + q * kPanelB, columns, rows, to);
        }
        return;
      }
      const int64_t count = end - begin;
      if (places.to[end - 1] - places.to[begin] == count - 1) {
        for (int64_t r = 0; r < rows; ++r)
          std::memcpy(places.to[begin] + r * channel_stride, buffer + r * columns, size_t(count) * 4);
        return;
      }
      int64_t at[kMostPanelsB * kPanelB];
      for (int64_t i = 0; i < count; ++i) at[i] = places.to[begin + i] - places.to[begin];
      for (int64_t r = 0; r < rows; ++r) {
        float* to = places.to[begin] + r * channel_stride;
        for (int64_t i = 0; i < count; ++i) to[at[i]] = buffer[r * columns + i];
      }
    }
  };

  const PathKernels& path_;
  const ConvPlan& plan_;
  const ConstImages& from_;
  const PackRounding& rounding_;
  const char* weights_;
  const Images& to_;
  const float* bias_;
  const Frame frame_;
  const int64_t record_bytes_, image_bytes_;
};

}  // namespace

int64_t correlate(const PathKernels& path, const ConvPlan& plan, const ConstImages& from, const PackRounding& rounding,
                  const void* packed_weights, const Images& to, const float* bias) {
  const ConvShape& s = plan.shape;
  const Worker worker(path, plan, from, rounding, static_cast<const char*>(packed_weights), to, bias);
  const int64_t work =  // multiply-adds of an image
      s.out_height() * s.out_width() * s.out_channels * (s.in_channels / s.groups) * s.kernel_h * s.kernel_w;
  if (s.batch < 4) return worker.run(0, s.batch, s.batch * work > kSerialWork);
  const int64_t grain = std::max<int64_t>(1, kSerialWork / work);
  std::atomic<int64_t> bad{0};
  base::parallel_for(0, s.batch, grain, [&](int64_t first, int64_t last) { bad += worker.run(first, last, false); });
  return bad;
}

}  // namespace hpqf::kernels
