// dw[out][tap][in] = sum over pixels of dy[out][pixel] * x[in][pixel moved by the tap], as a product of x (side A, one
// row for each tap and input channel) and dy (side B) that contracts pixels.
//
// A band of x is quantised once for all taps: conv_planes.h.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/conv_checks.h"
#include "hpqf/kernels/gemm/conv_planes.h"
#include "hpqf/kernels/gemm/conv_sampled.h"
#include "hpqf/kernels/gemm/correlation.h"
#include "hpqf/kernels/gemm/driver.h"
#include "hpqf/kernels/gemm/path.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {
namespace {

constexpr int64_t kGradientBytes = 4 << 20;  // packed dy at a time: stays in a third-level cache
constexpr int64_t kPackedBytes = 128 << 10;  // of x, packed, that passes by dy at a time
constexpr int64_t kMostChannels = 32;        // of it
constexpr int64_t kPieceRows = 2 * kPanelB;  // channels of dy packed together

// memcpy without its call for the few elements of a row, and without touching what lies beyond.
inline void copy_row(const float* from, int64_t n, float* to) {
  if (n < 4) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + 4 <= n; i += 4) std::memcpy(to + i, from + i, 16);
  std::memcpy(to + n - 4, from + n - 4, 16);
}

class Gradient {
 public:
  Gradient(const PathKernels& path, const ConvShape& shape, const ConstImages& x, const PackRounding& rounding_x,
           const ConstImages& dy, const PackRounding& rounding_dy, const GemmBlocks& blocks, const Images& dw)
      : path_(path),
        s(shape),
        x_(x),
        rounding_x_(rounding_x),
        dy_(dy),
        rounding_dy_(rounding_dy),
        blocks_(blocks),
        dw_(dw),
        bands_(shape),
        planes_(shape, bands_, blocks.grid),
        lane_(lane_bytes(blocks.grid)),
        in_(shape.in_channels / shape.groups),
        out_(shape.out_channels / shape.groups),
        taps_(shape.kernel_h * shape.kernel_w),
        sum_stride_(out_ + 16) {  // not a power of two: columns would share cache sets
    const int64_t pixels = bands_.images * bands_.rows * shape.out_width();
    // Also few channels make several units, for threads.
    const int64_t fits = kPackedBytes / (taps_ * pixels * lane_), even = divide_up(in_, 4);
    channels_ = std::clamp<int64_t>(std::min(fits, even) / kPanelA * kPanelA, kPanelA, kMostChannels);
    units_ = divide_up(in_, channels_);
  }

  int64_t run() const {
    const int64_t band_bytes = s.groups * gradient_bytes(grid(bands_.at(0, s)));
    const int64_t at_once = std::clamp<int64_t>(kGradientBytes / band_bytes, 1, bands_.count());
    char* gradient = scratch(Scratch::gradient, at_once * band_bytes);
    float* sums = reinterpret_cast<float*>(scratch(Scratch::sums, s.groups * units_ * unit_sums() * 4));
    std::atomic<int64_t> bad{0};
    const int64_t pieces = divide_up(out_, kPieceRows);
    for (int64_t b0 = 0; b0 < bands_.count(); b0 += at_once) {
      const int64_t b1 = std::min(b0 + at_once, bands_.count());
      each((b1 - b0) * s.groups * pieces, [&](int64_t i) {
        const int64_t band = b0 + i / pieces / s.groups, group = i / pieces % s.groups;
        bad += pack_gradient(band, group, i % pieces, gradient + (band - b0) * band_bytes);
      });
      each(s.groups * units_, [&](int64_t i) {
        for (int64_t band = b0; band < b1; ++band)
          bad +=
              multiply_unit(band, i / units_, i % units_, gradient + (band - b0) * band_bytes, sums + i * unit_sums());
      });
    }
    each(s.groups * units_, [&](int64_t i) { store(i / units_, i % units_, sums + i * unit_sums()); });
    return bad;
  }

 private:
  // In parallel. The body is passed by reference: std::function would copy what it captures to the heap.
  template <class Body>
  void each(int64_t count, Body body) const {
    auto range = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) body(i);
    };
    const int64_t work = s.batch * s.out_height() * s.out_width() * s.out_channels * in_ * taps_;
    base::parallel_for(0, count, work < kSerialWork ? count : 1, std::ref(range));
  }

  BlockGrid grid(const Band& band) const {
    return {blocks_.grid, band.images * band.rows * s.out_width(), blocks_.block};
  }
  int64_t gradient_bytes(const BlockGrid& g) const { return divide_up(out_, kPanelB) * g.b_panel_bytes(); }
  int64_t unit_sums() const { return taps_ * channels_ * sum_stride_; }

  // Some channels of dy of one band.
  int64_t pack_gradient(int64_t index, int64_t group, int64_t piece, char* packed) const {
    const Band band = bands_.at(index, s);
    const BlockGrid g = grid(band);
    const int64_t first = piece * kPieceRows, rows = std::min(kPieceRows, out_ - first), channel = group * out_ + first;
    const int64_t size = s.out_height() * s.out_width(), width = s.out_width();
    const bool planes = dy_.layout == ImageLayout::channels_first;
    const float* from = dy_.data + band.image * s.out_channels * size +
                        (planes ? channel * size + band.row * width : band.row * width * s.out_channels + channel);
    MatrixView view =
        planes ? MatrixView{from, rows, g.k, size, false} : MatrixView{from, rows, g.k, s.out_channels, true};
    if (band.images > 1) {  // rows of the images in turn
      float* copy = reinterpret_cast<float*>(scratch(Scratch::output, rows * g.k * 4));
      const int64_t step = s.out_channels * size;
      if (planes) {
        float* to = copy;
        for (int64_t c = 0; c < rows; ++c)
          for (int64_t y = 0; y < band.rows; ++y)
            for (int64_t n = 0; n < band.images; ++n)
              copy_row(from + n * step + c * size + y * width, width, to), to += width;
        view = {copy, rows, g.k, g.k, false};
      } else {
        float* to = copy;
        for (int64_t y = 0; y < band.rows; ++y)
          for (int64_t n = 0; n < band.images; ++n)
            for (int64_t i = 0; i < width; ++i, to += rows)
              std::memcpy(to, from + n * step + (y * width + i) * s.out_channels, size_t(rows) * 4);
        view = {copy, rows, g.k, rows, true};
      }
    }
    const int64_t pieces = divide_up(out_, kPieceRows);
    const PackJob job{view, g, blocks_.grid == Grid::int8 ? path_.b8 : path_.b12,
                      piece_rounding(rounding_dy_, (index * s.groups + group) * pieces + piece)};
    return path_.pack_b(job, 0, divide_up(rows, kPanelB),
                        packed + group * gradient_bytes(grid(bands_.at(0, s))) + first / kPanelB * g.b_panel_bytes());
  }

  // The codes of a unit's channels in planes, and the scales of its rows of A.
  struct Unit {
    Band band;
    int64_t first, channels;  // of the group
    char* planes;             // [channel][kernel column][residue of rows]
    float* scales;            // [tap][channels_]
    int64_t* distances;       // [tap]: where it begins in the planes of a channel
  };

  int64_t multiply_unit(int64_t index, int64_t group, int64_t unit, const char* gradient, float* sums) const {
    const Band band = bands_.at(index, s);
    const BlockGrid g = grid(band);
    char* planes = scratch(Scratch::planes, channels_ * planes_.channel_bytes() + taps_ * (channels_ * 4 + 8));
    int64_t* distances = reinterpret_cast<int64_t*>(planes + channels_ * planes_.channel_bytes());
    const Unit u{band,
                 unit * channels_,
                 std::min(channels_, in_ - unit * channels_),
                 planes,
                 reinterpret_cast<float*>(distances + taps_),
                 distances};
    for (int64_t tap = 0; tap < taps_; ++tap) distances[tap] = planes_.distance(tap, band.images);
    const int64_t bad = quantise(index, group, u);
    const GemmResult result{sums, sum_stride_, index > 0, nullptr};
    auto pack = [&](int64_t first, int64_t last, int64_t b0, int64_t b1, char* out) {
      pack_unit(u, g, first, last, b0, b1, out);
      return int64_t(0);
    };
    multiply(path_, taps_ * channels_, std::ref(pack), gradient + group * gradient_bytes(grid(bands_.at(0, s))), out_,
             g, result);
    return bad;
  }

  // Panels of A: four channels of one tap.
  void pack_unit(const Unit& u, const BlockGrid& g, int64_t first, int64_t last, int64_t b0, int64_t b1,
                 char* out) const {
    int64_t tap = first * kPanelA / channels_, channel = first * kPanelA % channels_;
    for (int64_t p = first; p < last; ++p) {
      const char* from = u.planes + u.distances[tap];
      for (int64_t b = b0; b < b1; ++b) {
        const char* row[kPanelA];
        for (int64_t r = 0; r < kPanelA; ++r)
          row[r] = from + std::min(channel + r, u.channels - 1) * planes_.channel_bytes() + b * g.block * lane_;
        std::memcpy(out, u.scales + tap * channels_ + channel, kPanelA * 4);
        path_.conv->interleave(row, g.padded(b) * lane_, out + a_header(g.grid));
        out += g.a_bytes(g.padded(b));
      }
      if ((channel += kPanelA) == channels_) channel = 0, ++tap;
    }
  }

  int64_t quantise(int64_t index, int64_t group, const Unit& u) const {
    const InputRows rows = planes_.input_rows(u.band);
    const int64_t run = rows.count * s.width, size = s.height * s.width;
    const bool planes = x_.layout == ImageLayout::channels_first;
    const float* from = x_.data + u.band.image * s.in_channels * size;
    const int64_t channel = group * in_ + u.first;
    int64_t channel_stride = size, image_stride = s.in_channels * size;
    if (planes) {
      from += channel * size + rows.first * s.width;
    } else {
      float* copy = reinterpret_cast<float*>(scratch(Scratch::strips, (channels_ + 1) * u.band.images * run * 4));
      transpose(from + rows.first * s.width * s.in_channels + channel, u, run, copy, s.in_channels - channel);
      from = copy;
      channel_stride = u.band.images * run;
      image_stride = run;
    }
    const CodeRule& rule = blocks_.grid == Grid::int8 ? path_.a8 : path_.a12;
    const bool stochastic = rounding_x_.rounding == Rounding::stochastic;
    char* codes = scratch(Scratch::panels, u.band.images * run * lane_ + kSlack);
    int64_t bad = 0;
    for (int64_t c = 0; c < u.channels; ++c, from += channel_stride) {
      uint32_t largest = 0;
      for (int64_t n = 0; n < u.band.images; ++n)
        largest = std::max(largest, path_.conv->largest(from + n * image_stride, run));
      const float* source = from;
      int64_t stride = image_stride;
      const bool finite = largest <= kLargestFinite;
      if (!finite) {
        ++bad;
        float* clean = reinterpret_cast<float*>(scratch(Scratch::output, u.band.images * run * 4));
        for (int64_t n = 0; n < u.band.images; ++n)
          for (int64_t i = 0; i < run; ++i) {
            const float v = from[n * image_stride + i];
            clean[n * run + i] = std::isfinite(v) ? v : 0;
          }
        source = clean, stride = run;
        largest = path_.conv->largest(clean, u.band.images * run);
      }
      float most;
      std::memcpy(&most, &largest, 4);
      const float scale = std::max(most / scale_divisor(rule.largest, stochastic), smallest_scale(stochastic));
      const int64_t key = (index * s.groups + group) * in_ + u.first + c;
      const CodeJob job{blocks_.grid, rule.offset, stochastic, (stochastic ? 65536.0f : 1.0f) / scale,
                        row_key(rounding_x_.seed, key)};
      for (int64_t n = 0; n < u.band.images; ++n)
        path_.conv->codes(job, source + n * stride, run, n * run, codes + n * run * lane_);
      for (int64_t tap = 0; tap < taps_; ++tap)
        u.scales[tap * channels_ + c] =
            !finite && meets_bad(u.band, rows, from, image_stride, tap) ? std::nanf("") : scale;
      planes_.lay_out(*path_.conv, u.band, rows, codes, rule.offset, u.planes + c * planes_.channel_bytes());
    }
    for (int64_t c = u.channels; c < channels_; ++c)  // rows of A that nobody reads
      for (int64_t tap = 0; tap < taps_; ++tap) u.scales[tap * channels_ + c] = 0;
    return bad;
  }

  // Pixels by channels to channels by pixels.
  void transpose(const float* from, const Unit& u, int64_t run, float* copy, int64_t readable) const {
    const int64_t line = u.band.images * run;
    for (int64_t n = 0; n < u.band.images; ++n, from += s.in_channels * s.height * s.width)
      for (int64_t c = 0; c < u.channels; c += 16) {
        if (c + 16 <= readable) {
          float* to[16];
          for (int64_t i = 0; i < 16; ++i) to[i] = copy + std::min(c + i, channels_) * line + n * run;
          constexpr int64_t kAhead = 32;  // pixels: lines a kilobyte apart are not foreseen by the processor
          for (int64_t p = 0; p < run; p += kAhead) {
            const int64_t count = std::min(kAhead, run - p);
            const float* next = from + c + (p + kAhead) * s.in_channels;
            for (int64_t i = 0; i < std::min(kAhead, run - p - kAhead); ++i)
              __builtin_prefetch(next + i * s.in_channels);
            path_.conv->store_columns(from + c + p * s.in_channels, s.in_channels, count, to);
            for (float*& t : to) t += count;
          }
        } else {
          for (int64_t i = c; i < std::min(c + 16, u.channels); ++i)
            for (int64_t p = 0; p < run; ++p) copy[i * line + n * run + p] = from[p * s.in_channels + i];
        }
      }
  }

  // Whether a tap meets a NaN or infinity of a channel: exact, and only asked for channels that have one.
  bool meets_bad(const Band& band, const InputRows& rows, const float* from, int64_t image_stride, int64_t tap) const {
    const int64_t dy = planes_.rows().offset(tap / s.kernel_w);
    const int64_t dx = tap % s.kernel_w * s.dilation_w - s.padding_w;
    for (int64_t n = 0; n < band.images; ++n)
      for (int64_t oy = band.row; oy < band.row + band.rows; ++oy)
        for (int64_t ox = 0; ox < s.out_width(); ++ox) {
          const int64_t y = oy * s.stride_h + dy, x = ox * s.stride_w + dx;
          if (y < 0 || y >= s.height || x < 0 || x >= s.width) continue;
          if (!std::isfinite(from[n * image_stride + (y - rows.first) * s.width + x])) return true;
        }
    return false;
  }

  // The sums of a unit [tap][channel][out] to their places in dw, sixteen outputs at a time.
  void store(int64_t group, int64_t unit, const float* sums) const {
    const int64_t first = unit * channels_, channels = std::min(channels_, in_ - first), rows = taps_ * channels_;
    float* lines = reinterpret_cast<float*>(scratch(Scratch::output, kPanelB * rows * 4));
    for (int64_t o = 0; o < out_; o += kPanelB) {
      float* to[kPanelB];
      for (int64_t i = 0; i < kPanelB; ++i) to[i] = lines + i * rows;
      path_.conv->store_columns(sums + o, sum_stride_, rows, to);
      for (int64_t i = 0; i < std::min<int64_t>(kPanelB, out_ - o); ++i) {
        float* dw = dw_.data + (group * out_ + o + i) * in_ * taps_;
        if (dw_.layout == ImageLayout::channels_first) {
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t tap = 0; tap < taps_; ++tap) dw[(first + c) * taps_ + tap] = to[i][tap * channels_ + c];
        } else {
          for (int64_t tap = 0; tap < taps_; ++tap)
            std::memcpy(dw + tap * in_ + first, to[i] + tap * channels_, size_t(channels) * 4);
        }
      }
    }
  }

  const PathKernels& path_;
  const ConvShape& s;
  const ConstImages& x_;
  const PackRounding& rounding_x_;
  const ConstImages& dy_;
  const PackRounding& rounding_dy_;
  const GemmBlocks& blocks_;
  const Images& dw_;
  const Bands bands_;
  const Planes planes_;
  const int64_t lane_, in_, out_, taps_, sum_stride_;
  int64_t channels_, units_;  // a unit: input channels that are packed together
};

}  // namespace

int64_t conv_weight_gradient(const GemmPath& path, const ConvShape& shape, const ConstImages& x,
                             const PackRounding& rounding_x, const ConstImages& dy, const PackRounding& rounding_dy,
                             const GemmBlocks& blocks, const Images& dw) {
  check(shape, blocks);
  if (shape.batch == 0) {
    std::fill_n(dw.data, shape.out_channels * (shape.in_channels / shape.groups) * shape.kernel_h * shape.kernel_w,
                0.0f);
    return 0;
  }
  const Sampled read = sampled(shape, x);
  return Gradient(*path.kernels, read.shape, read.x, rounding_x, dy, rounding_dy, blocks, dw).run();
}

}  // namespace hpqf::kernels
