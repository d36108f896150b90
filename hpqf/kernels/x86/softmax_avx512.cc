#include "hpqf/kernels/x86/float16.h"

#include "hpqf/kernels/x86/softmax_loops.h"

namespace hpqf::kernels {

extern const SoftmaxImplementation kSoftmaxAvx512;
const SoftmaxImplementation kSoftmaxAvx512 = SoftmaxLoops<Float16>::implementation("avx512", &runs_float16);

}  // namespace hpqf::kernels
