// Codes of x for the gradient of a weight.
//
// Pixels are taken in bands: some rows of one image, or several whole small images. A band of x is quantised once; its
// codes are laid out in planes, one for each column of the kernel and each residue of its rows modulo the stride, in
// the order row, image, column. In this order a tap of the plane is a constant distance, padding above and below
// belongs to the plane, and every pixel of the contraction is a pixel of dy: none is spent on borders. Two shifted uses
// of a code share its scale, hence one scale for a channel and band.
#pragma once
#include <algorithm>
#include <numeric>

#include "hpqf/kernels/gemm/conv_kernels.h"
#include "hpqf/kernels/gemm/integer_conv.h"

namespace hpqf::kernels {

inline constexpr int64_t kBandPixels = 512;      // enough that sums (fp32, in memory) are rarely touched
inline constexpr int64_t kMostBandPixels = 768;  // from here on an image is cut into bands
inline constexpr int64_t kSlack = 64;            // bytes that copies of codes may read and write beyond the end

constexpr int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

struct Band {
  int64_t image, images, row, rows;  // of dy
};

// Which bands there are.
struct Bands {
  int64_t images, rows;  // of the largest
  int64_t across, down;  // count
  explicit Bands(const ConvShape& s) {
    const int64_t size = s.out_height() * s.out_width();
    const int64_t most = std::max<int64_t>(1, divide_up(kBandPixels, size));
    across = divide_up(s.batch, most);
    images = divide_up(s.batch, across);
    across = divide_up(s.batch, images);
    rows = divide_up(s.out_height(), std::max<int64_t>(1, size / kMostBandPixels));
    down = divide_up(s.out_height(), rows);
  }
  int64_t count() const { return across * down; }
  Band at(int64_t i, const ConvShape& s) const {
    const int64_t image = i / down * images, row = i % down * rows;
    return {image, std::min(images, s.batch - image), row, std::min(rows, s.out_height() - row)};
  }
};

// The kernel's rows as places in planes. Which residue a tap reads repeats every stride / gcd(stride, dilation) taps.
struct KernelRows {
  const ConvShape& s;
  const int64_t planes;           // residues that are read
  const int64_t lowest, highest;  // rows of a plane before and after those of dy, over all taps
  explicit KernelRows(const ConvShape& shape)
      : s(shape),
        planes(std::min(s.kernel_h, s.stride_h / std::gcd(s.stride_h, s.dilation_h))),
        lowest(move(0)),
        highest(move(s.kernel_h - 1)) {}
  int64_t offset(int64_t tap) const { return tap * s.dilation_h - s.padding_h; }
  int64_t move(int64_t tap) const { return floor_divide(offset(tap), s.stride_h); }
  int64_t residue(int64_t tap) const { return offset(tap) - move(tap) * s.stride_h; }
  int64_t plane(int64_t tap) const { return tap % planes; }
};

struct InputRows {
  int64_t first, count;
};

class Planes {
 public:
  Planes(const ConvShape& shape, const Bands& bands, Grid grid);
  const KernelRows& rows() const { return kernel_rows_; }
  // Rows of the input that a band reads, of those the image has.
  InputRows input_rows(const Band& band) const;
  // Of all planes of a channel, with what copies may write beyond them.
  int64_t channel_bytes() const { return s.kernel_w * kernel_rows_.planes * plane_bytes_; }
  // Where a tap begins in the planes of a channel.
  int64_t distance(int64_t tap, int64_t images) const;
  // The planes of one channel from its codes [image][row][column]; `offset` is the code of zero.
  void lay_out(const ConvKernels& kernels, const Band& band, const InputRows& rows, const char* codes, int offset,
               char* planes) const;

 private:
  int64_t plane_at(int64_t kx, int64_t ky) const {
    return (kx * kernel_rows_.planes + kernel_rows_.plane(ky)) * plane_bytes_;
  }
  void move_plane(const char* ordered, int64_t lines, int64_t columns, int offset, char* to) const;
  void copy_rows(const ConvKernels& kernels, const Band& band, const InputRows& rows, const char* codes, int offset,
                 int64_t ky, int64_t dx, char* to) const;

  const ConvShape& s;
  const KernelRows kernel_rows_;
  const Grid grid_;
  const int64_t lane_;
  const int64_t plane_bytes_;
};

}  // namespace hpqf::kernels
