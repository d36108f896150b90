// Quantised images in memory: conv_kernels.h.
#pragma once
#include "hpqf/kernels/gemm/correlation.h"
#include "hpqf/kernels/gemm/path.h"

namespace hpqf::kernels {

// Where the records of an image with its border lie.
class Frame {
 public:
  explicit Frame(const ConvPlan& plan);
  int64_t in_h, in_w;  // without border
  int64_t record_bytes, image_bytes;
  // From the first record of an image to the one at (y, x), which may lie in the border.
  int64_t distance(int64_t y, int64_t x) const { return ((y + low_y_) * width_ + x + low_x_) * record_bytes; }
  // From a record to the one (y, x) further on.
  int64_t move(int64_t y, int64_t x) const { return (y * width_ + x) * record_bytes; }
  void clear_border(char* image) const;

 private:
  int64_t low_y_ = 0, low_x_ = 0, height_, width_;
};

inline constexpr int64_t kPiece = 128;  // pixels quantised together: the strips of one k-major copy (pack_avx2.cc)

// Quantises up to kPiece pixels of image n, one group of channels, from `pixel` on into the records of `image`. One
// more record is scratch. Returns the blocks with a NaN or infinity.
int64_t quantise_pixels(const PathKernels& path, const ConvPlan& plan, const Frame& frame, const ConstImages& from,
                        const PackRounding& rounding, int64_t group, int64_t n, int64_t pixel, char* image,
                        char* unused);

}  // namespace hpqf::kernels
