#include "hpqf/kernels/gemm/integer_conv.h"

#include "hpqf/kernels/gemm/conv_checks.h"
#include "hpqf/kernels/gemm/conv_sampled.h"
#include "hpqf/kernels/gemm/correlation.h"

namespace hpqf::kernels {
namespace {

int64_t run(const GemmPath& path, const ConvShape& shape, ConvPass pass, const ConstImages& from,
            const PackRounding& rounding, const void* weights, const GemmBlocks& blocks, const Images& to,
            const float* bias) {
  check(shape, blocks);
  if (shape.batch == 0) return 0;
  const Sampled read = pass == ConvPass::forward ? sampled(shape, from) : Sampled{shape, from};
  return correlate(*path.kernels, ConvPlan(read.shape, pass, blocks), read.x, rounding, weights, to, bias);
}

}  // namespace

ConvPlan::ConvPlan(const ConvShape& s, ConvPass p, const GemmBlocks& blocks)
    : shape(s),
      pass(p),
      from_channels((p == ConvPass::forward ? s.in_channels : s.out_channels) / s.groups),
      to_channels((p == ConvPass::forward ? s.out_channels : s.in_channels) / s.groups) {
  const int64_t padded = divide_up(from_channels, kPadK) * kPadK;
  int64_t block = blocks.block;
  while (padded % block) block /= 2;
  record = {blocks.grid, block, padded / block};
}

Correlation ConvPlan::part(int64_t y, int64_t x) const {
  const ConvShape& s = shape;
  if (pass == ConvPass::forward)
    return {forward_axis(s.height, s.out_height(), s.kernel_h, s.stride_h, s.padding_h, s.dilation_h),
            forward_axis(s.width, s.out_width(), s.kernel_w, s.stride_w, s.padding_w, s.dilation_w)};
  return {gradient_axis(s.out_height(), s.height, s.kernel_h, s.stride_h, s.padding_h, s.dilation_h, y),
          gradient_axis(s.out_width(), s.width, s.kernel_w, s.stride_w, s.padding_w, s.dilation_w, x)};
}

bool ConvPlan::some_empty() const {
  for (int64_t y = 0; y < parts_y(); ++y)
    for (int64_t x = 0; x < parts_x(); ++x)
      if (part(y, x).empty()) return true;
  return false;
}

int64_t ConvPlan::weights(int64_t y, int64_t x, int64_t group) const {
  int64_t bytes = 0;
  for (int64_t i = 0; i < y * parts_x() + x; ++i)
    bytes += shape.groups * weight_bytes(part(i / parts_x(), i % parts_x()));
  return bytes + (group == 0 ? 0 : group * weight_bytes(part(y, x)));
}

int64_t conv_forward(const GemmPath& path, const ConvShape& shape, const ConstImages& x, const PackRounding& rounding,
                     const void* packed_weights, const GemmBlocks& blocks, const Images& y, const float* bias) {
  return run(path, shape, ConvPass::forward, x, rounding, packed_weights, blocks, y, bias);
}

int64_t conv_input_gradient(const GemmPath& path, const ConvShape& shape, const ConstImages& dy,
                            const PackRounding& rounding, const void* packed_weights, const GemmBlocks& blocks,
                            const Images& dx) {
  return run(path, shape, ConvPass::input_gradient, dy, rounding, packed_weights, blocks, dx, nullptr);
}

}  // namespace hpqf::kernels
