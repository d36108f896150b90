#include "hpqf/kernels/gemm/conv_sampled.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "hpqf/base/parallel.h"
#include "hpqf/kernels/gemm/scratch.h"

namespace hpqf::kernels {

Sampled sampled(const ConvShape& s, const ConstImages& x) {
  if (s.kernel_h * s.kernel_w > 1 || s.padding_h + s.padding_w > 0 || s.stride_h * s.stride_w == 1) return {s, x};
  ConvShape to = s;
  to.height = s.out_height(), to.width = s.out_width();
  to.stride_h = to.stride_w = 1;
  const bool planes = x.layout == ImageLayout::channels_first;
  // Of a row: images and channels, or images.
  const int64_t outer = planes ? s.batch * s.in_channels : s.batch, inner = planes ? 1 : s.in_channels;
  float* copy = reinterpret_cast<float*>(scratch(Scratch::sampled, outer * to.height * to.width * inner * 4));
  const int64_t grain = std::max<int64_t>(1, 16384 / (to.width * inner));
  auto rows = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i / to.height * s.height + i % to.height * s.stride_h;
      const float* from = x.data + row * s.width * inner;
      float* line = copy + i * to.width * inner;
      for (int64_t c = 0; c < to.width; ++c) {
        if (planes)
          line[c] = from[c * s.stride_w];
        else
          std::memcpy(line + c * inner, from + c * s.stride_w * inner, size_t(inner) * 4);
      }
    }
  };
  base::parallel_for(0, outer * to.height, grain, std::ref(rows));
  return {to, {copy, x.layout}};
}

}  // namespace hpqf::kernels
