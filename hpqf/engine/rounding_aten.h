// The arithmetic of rounding in ATen ops: for tensors no kernel of ours can reach (other devices, subclasses).
#pragma once
#include <ATen/core/Tensor.h>

#include "hpqf/formats/block_format.h"

namespace hpqf::engine {

at::Tensor round_aten(const at::Tensor& t, const BlockFormat& format, int64_t axis);

// Element codes and scales, for torch's own low-precision GEMMs: t ~= codes * scales, blocks along `axis` of shape
// tensor or row.
struct ScaledCodes {
  at::Tensor codes;   // int8 or float8, shape of t
  at::Tensor scales;  // fp32, broadcasts against t
};
ScaledCodes encode_aten(const at::Tensor& t, const BlockFormat& format, int64_t axis);

}  // namespace hpqf::engine
