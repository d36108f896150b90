#include "hpqf/kernels/x86/float8.h"

#include "hpqf/kernels/x86/activation_loops.h"
#include "hpqf/kernels/x86/two.h"

namespace hpqf::kernels {

extern const ActivationImplementation kActivationAvx2;
const ActivationImplementation kActivationAvx2 = ActivationLoops<Two<Float8>>::implementation("avx2", &runs_float8);

}  // namespace hpqf::kernels
