// 2-d convolution on block-scaled integers (integer_gemm.h): forward, gradient of the input, gradient of the weight,
// from fp32 images, which are quantised once and then copied as codes, into fp32. 1-d is height 1. An im2col matrix of
// fp32 never exists.
//
// One Zen 3 core (AVX2) against the better of torch's two fp32 layouts, weights packed beforehand, gradients rounded
// stochastically, median over ResNet layers of 32 to 512 channels, channels first and last:
//              3 x 3            3 x 3, stride 2   1 x 1
//   forward    int8 1.9   int12 1.2   1.9   1.3   1.6   1.1
//   input      int8 1.8   int12 1.15  1.65  1.2   1.4   1.1
//   weight     int8 2.6   int12 1.7   2.3   1.6   1.15  0.9
// 1 x 1 kernels of few channels are bound by memory: at 32 channels they are slower than fp32 (0.5 to 0.7), at 512
// faster (int8 1.9). A packing of the weights costs 1 to 10 % of a pass, 15 % at 512 channels of 7 x 7 with batch 16.
#pragma once
#include "hpqf/kernels/gemm/integer_gemm.h"

namespace hpqf::kernels {

struct ConvShape {
  int64_t batch = 0, in_channels = 0, out_channels = 0;
  int64_t height = 1, width = 1;  // of the input
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t padding_h = 0, padding_w = 0;  // zeros on each side
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  int64_t out_height() const { return (height + 2 * padding_h - dilation_h * (kernel_h - 1) - 1) / stride_h + 1; }
  int64_t out_width() const { return (width + 2 * padding_w - dilation_w * (kernel_w - 1) - 1) / stride_w + 1; }
};

// How images lie in memory, dense: [batch][channels][height][width] or [batch][height][width][channels]. Weights alike,
// their batch being the output channels and their channels those of one group.
enum class ImageLayout : uint8_t { channels_first, channels_last };

struct ConstImages {
  const float* data = nullptr;
  ImageLayout layout = ImageLayout::channels_first;
};
struct Images {
  float* data = nullptr;
  ImageLayout layout = ImageLayout::channels_first;
};

// The passes that multiply by the weights, each with a packing of its own.
enum class ConvPass : uint8_t { forward, input_gradient };

// `blocks.block` is the most channels under one scale: a block never leaves its pixel, so the block used is the largest
// allowed one that divides the channels of a group, rounded up to 32. Groups of few channels work but do not pay: each
// costs as much as 32, and below 32 channels fp32 is the better choice.
HPQF_API int64_t conv_weight_bytes(const ConvShape& shape, ConvPass pass, const GemmBlocks& blocks);

// Packs the weights into `out` (64-byte aligned, conv_weight_bytes). They take the A side of the product, int7 on AVX2;
// images the B side, which bears outliers better. Returns the number of blocks with a NaN or infinity.
HPQF_API int64_t conv_pack_weights(const GemmPath& path, const ConvShape& shape, ConvPass pass, const ConstImages& w,
                                   const GemmBlocks& blocks, const PackRounding& rounding, void* out);

// Each of the three returns the number of blocks of its images with a NaN or infinity; pixels that a stride skips may
// count, and in the gradient of a weight those that two bands read count twice. A NaN reaches every output that depends
// on it and no other; padding spreads nothing. The same bits for any number of threads. Error for a shape that has no
// output. Nothing is allocated once the threads' scratch has grown to size: an image in codes, 256 KiB at least, for
// each thread; for the gradient of a weight also the sums, as large as dw, and 4 MiB of dy in codes.

// y = conv(x, w) + bias; bias may be null. y must not overlap x.
HPQF_API int64_t conv_forward(const GemmPath& path, const ConvShape& shape, const ConstImages& x,
                              const PackRounding& rounding, const void* packed_weights, const GemmBlocks& blocks,
                              const Images& y, const float* bias = nullptr);

// dx = gradient of the input, from weights packed for ConvPass::input_gradient. A stride splits it into as many
// convolutions as there are residues, so that no inserted zero is multiplied.
HPQF_API int64_t conv_input_gradient(const GemmPath& path, const ConvShape& shape, const ConstImages& dy,
                                     const PackRounding& rounding, const void* packed_weights, const GemmBlocks& blocks,
                                     const Images& dx);

// dw = gradient of the weight, laid out as the weights are. The contraction runs over the pixels of all images, in
// bands of some 512 to 1024 of them. dy takes the B side with the blocks asked for; x the A side (int7 on AVX2) with
// one scale for each channel of a band, because all taps read the same codes at different places.
HPQF_API int64_t conv_weight_gradient(const GemmPath& path, const ConvShape& shape, const ConstImages& x,
                                      const PackRounding& rounding_x, const ConstImages& dy,
                                      const PackRounding& rounding_dy, const GemmBlocks& blocks, const Images& dw);

}  // namespace hpqf::kernels
