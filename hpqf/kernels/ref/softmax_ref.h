// The definition of softmax and log_softmax, in double precision.
#pragma once
#include "hpqf/kernels/softmax.h"

namespace hpqf::kernels::ref {

void softmax_forward(const SoftmaxForward& a, int64_t first, int64_t last);
void softmax_backward(const SoftmaxBackward& a, int64_t first, int64_t last);

}  // namespace hpqf::kernels::ref
