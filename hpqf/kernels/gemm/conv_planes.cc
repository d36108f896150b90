#include "hpqf/kernels/gemm/conv_planes.h"

#include <cstring>

#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {

Planes::Planes(const ConvShape& shape, const Bands& bands, Grid grid)
    : s(shape),
      kernel_rows_(shape),
      grid_(grid),
      lane_(lane_bytes(grid)),
      plane_bytes_(divide_up((bands.rows + kernel_rows_.highest - kernel_rows_.lowest) * bands.images *
                                     shape.out_width() * lane_ +
                                 kSlack,
                             64) *
                   64) {}

int64_t Planes::distance(int64_t tap, int64_t images) const {
  const int64_t ky = tap / s.kernel_w;
  return plane_at(tap % s.kernel_w, ky) +
         (kernel_rows_.move(ky) - kernel_rows_.lowest) * images * s.out_width() * lane_;
}

InputRows Planes::input_rows(const Band& band) const {
  const int64_t first = std::max<int64_t>(0, band.row * s.stride_h + kernel_rows_.offset(0));
  const int64_t last =
      std::min(s.height - 1, (band.row + band.rows - 1) * s.stride_h + kernel_rows_.offset(s.kernel_h - 1));
  return {first, std::max<int64_t>(0, last - first + 1)};
}

// Where the columns of one residue modulo the stride are no more than those of dy, they are put in order once, and all
// columns of the kernel that read them are that plane moved, with the codes that came in from the next row overwritten.
void Planes::lay_out(const ConvKernels& kernels, const Band& band, const InputRows& rows, const char* codes, int offset,
                     char* planes) const {
  const int64_t repeat = std::min(s.kernel_w, s.stride_w / std::gcd(s.stride_w, s.dilation_w));
  for (int64_t ky = 0; ky < kernel_rows_.planes; ++ky)
    for (int64_t first = 0; first < repeat; ++first) {
      const int64_t dx = first * s.dilation_w - s.padding_w;
      const int64_t residue = dx - floor_divide(dx, s.stride_w) * s.stride_w;
      if (divide_up(s.width - residue, s.stride_w) > s.out_width() || s.kernel_w == 1) {
        for (int64_t kx = first; kx < s.kernel_w; kx += repeat)
          copy_rows(kernels, band, rows, codes, offset, ky, kx * s.dilation_w - s.padding_w, planes + plane_at(kx, ky));
        continue;
      }
      const int64_t lines = (band.rows + kernel_rows_.highest - kernel_rows_.lowest) * band.images;
      const int64_t most = std::max(s.padding_w, (s.kernel_w - 1) * s.dilation_w) * lane_;
      char* ordered = scratch(Scratch::output, lines * s.out_width() * lane_ + 2 * most + kSlack) + most;
      copy_rows(kernels, band, rows, codes, offset, ky, residue, ordered);
      for (int64_t kx = first; kx < s.kernel_w; kx += repeat)
        move_plane(ordered, lines, floor_divide(kx * s.dilation_w - s.padding_w, s.stride_w), offset,
                   planes + plane_at(kx, ky));
    }
}

void Planes::move_plane(const char* ordered, int64_t lines, int64_t columns, int offset, char* to) const {
  const int64_t line = s.out_width() * lane_, move = columns * lane_;
  std::memcpy(to, ordered + move, size_t(lines * line));
  const int64_t first = move < 0 ? 0 : std::max<int64_t>(0, line - move),
                last = move < 0 ? std::min(line, -move) : line;
  for (int64_t i = first; i < last; ++i)
    for (int64_t l = 0; l < lines; ++l) to[l * line + i] = char(offset);
}

// One plane: rows of the images in turn, columns that are `dx` to the right.
void Planes::copy_rows(const ConvKernels& kernels, const Band& band, const InputRows& rows, const char* codes,
                       int offset, int64_t ky, int64_t dx, char* to) const {
  const int64_t width = s.out_width(), line = width * lane_, run = rows.count * s.width * lane_;
  // Columns that the image has.
  const int64_t begin = std::clamp<int64_t>(-floor_divide(dx, s.stride_w), 0, width);
  const int64_t end = std::clamp<int64_t>(floor_divide(s.width - 1 - dx, s.stride_w) + 1, begin, width);
  const int64_t kept = (end - begin) * lane_;
  const int64_t last = band.row + band.rows + kernel_rows_.highest;
  for (int64_t j = band.row + kernel_rows_.lowest; j < last; ++j) {
    const int64_t y = j * s.stride_h + kernel_rows_.residue(ky) - rows.first;
    if (y < 0 || y >= rows.count || begin == end) {
      std::memset(to, offset, size_t(band.images * line));
      to += band.images * line;
      continue;
    }
    const char* from = codes + (y * s.width + begin * s.stride_w + dx) * lane_;
    if (band.images == 1 && s.stride_h == 1 && s.stride_w == 1 && kept == line && width == s.width) {
      const int64_t lines = std::min(last - j, rows.count - y);  // rows that lie together on both sides
      std::memcpy(to, from, size_t(lines * line));
      to += lines * line;
      j += lines - 1;
      continue;
    }
    for (int64_t n = 0; n < band.images; ++n, from += run, to += line) {
      for (int64_t i = 0; i < begin * lane_; ++i) to[i] = char(offset);
      if (s.stride_w == 1) {
        // In steps of 16 bytes, also beyond the end: what follows is written afterwards.
        for (int64_t i = 0; i < kept; i += 16) std::memcpy(to + begin * lane_ + i, from + i, 16);
      } else if (s.stride_w == 2) {
        kernels.every_second(grid_, from, end - begin, to + begin * lane_);
      } else if (lane_ == 1) {
        for (int64_t i = 0; i < kept; ++i) to[begin + i] = from[i * s.stride_w];
      } else {
        for (int64_t i = 0; i < kept; i += 2) std::memcpy(to + 2 * begin + i, from + i * s.stride_w, 2);
      }
      for (int64_t i = end * lane_; i < line; ++i) to[i] = char(offset);
    }
  }
}

}  // namespace hpqf::kernels
