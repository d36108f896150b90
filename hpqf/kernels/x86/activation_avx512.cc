#include "hpqf/kernels/x86/float16.h"

#include "hpqf/kernels/x86/activation_loops.h"
#include "hpqf/kernels/x86/two.h"

namespace hpqf::kernels {

extern const ActivationImplementation kActivationAvx512;
const ActivationImplementation kActivationAvx512 =
    ActivationLoops<Two<Float16>>::implementation("avx512", &runs_float16);

}  // namespace hpqf::kernels
