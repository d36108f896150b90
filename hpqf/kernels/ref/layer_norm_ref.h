// The definition of LayerNorm, in double precision.
#pragma once
#include "hpqf/kernels/layer_norm.h"

namespace hpqf::kernels::ref {

void layer_norm_forward(const LayerNormForward& a, int64_t first, int64_t last);
void layer_norm_backward(const LayerNormBackward& a, const LayerNormPiece& piece);

}  // namespace hpqf::kernels::ref
