#include "hpqf/kernels/x86/float8.h"

#include "hpqf/kernels/x86/layer_norm_loops.h"

namespace hpqf::kernels {

extern const LayerNormImplementation kLayerNormAvx2;
const LayerNormImplementation kLayerNormAvx2 = LayerNormLoops<Float8>::implementation("avx2", &runs_float8);

}  // namespace hpqf::kernels
