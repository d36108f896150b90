// A tensor of any kind, read by the statistics kernels.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "hpqf/formats/block_format.h"
#include "hpqf/kernels/tensor_stats.h"

namespace hpqf::train {

// Statistics of several tensors as if they were one, and what rounding to `format` would do to them.
struct Look {
  kernels::TensorStats stats;
  kernels::QuantisationError error;
  int64_t overflow = 0;
  bool rounded = false;  // `error` and `overflow` say something
};

// Adds `t`. Sparse gradients are taken by their values, other dtypes and devices as fp32 copies on the CPU. `round`:
// also rounds to `format`, in blocks along `axis`.
void look_at(const at::Tensor& t, const BlockFormat& format, int64_t axis, bool round, Look& look);

// 2-norms of the slices along `axis`; those of slices with a value that is not finite leave that value out.
std::vector<double> norms_along(const at::Tensor& t, int64_t axis);

// 2-norm of now - before over that of before; two tensors of one shape. As sums of squares, to be added up.
struct Change {
  double change = 0, weight = 0;
};
Change change_of(const at::Tensor& before, const at::Tensor& now);

}  // namespace hpqf::train
