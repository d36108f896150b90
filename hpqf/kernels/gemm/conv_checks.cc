#include "hpqf/kernels/gemm/conv_checks.h"

#include <algorithm>
#include <string>

#include "hpqf/base/error.h"

namespace hpqf::kernels {
namespace {

std::string text(int64_t a, int64_t b) { return std::to_string(a) + " x " + std::to_string(b); }

}  // namespace

void check(const ConvShape& s, const GemmBlocks& blocks) {
  packed_bytes(0, 0, blocks);  // throws for a block size not listed
  if (std::min({s.in_channels, s.out_channels, s.height, s.width, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
                s.dilation_h, s.dilation_w, s.groups}) < 1 ||
      std::min({s.batch, s.padding_h, s.padding_w}) < 0)
    throw Error(
        "integer convolution with a size, stride, dilation or group count below 1, or a batch or padding below 0",
        "sizes of 1 or more; a batch and padding of 0 or more", "check the shape");
  if (s.in_channels % s.groups || s.out_channels % s.groups)
    throw Error("integer convolution of " + std::to_string(s.in_channels) + " to " + std::to_string(s.out_channels) +
                    " channels in " + std::to_string(s.groups) + " groups",
                "groups that divide both", "change the number of groups");
  if (s.height + 2 * s.padding_h < s.dilation_h * (s.kernel_h - 1) + 1 ||
      s.width + 2 * s.padding_w < s.dilation_w * (s.kernel_w - 1) + 1)
    throw Error("integer convolution of an image of " + text(s.height, s.width) + " with padding " +
                    text(s.padding_h, s.padding_w) + " by a kernel of " + text(s.kernel_h, s.kernel_w),
                "a padded image at least as large as the dilated kernel", "add padding or use a smaller kernel");
}

}  // namespace hpqf::kernels
