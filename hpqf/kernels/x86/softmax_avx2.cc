#include "hpqf/kernels/x86/float8.h"

#include "hpqf/kernels/x86/softmax_loops.h"

namespace hpqf::kernels {

extern const SoftmaxImplementation kSoftmaxAvx2;
const SoftmaxImplementation kSoftmaxAvx2 = SoftmaxLoops<Float8>::implementation("avx2", &runs_float8);

}  // namespace hpqf::kernels
