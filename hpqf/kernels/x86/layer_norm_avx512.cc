#include "hpqf/kernels/x86/float16.h"

#include "hpqf/kernels/x86/layer_norm_loops.h"

namespace hpqf::kernels {

extern const LayerNormImplementation kLayerNormAvx512;
const LayerNormImplementation kLayerNormAvx512 = LayerNormLoops<Float16>::implementation("avx512", &runs_float16);

}  // namespace hpqf::kernels
