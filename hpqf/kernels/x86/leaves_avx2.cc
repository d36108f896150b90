#include <immintrin.h>

#include "hpqf/kernels/lanes_leaves.h"

namespace hpqf::kernels {
namespace {
struct Multiply {
  using U = WideLanes<8>::U;
  [[gnu::always_inline]] static U low_halves(const U& a, const U& b) {
    return as<U>(_mm256_mul_epu32(as<__m256i>(a), as<__m256i>(b)));
  }
};
}  // namespace

const Leaves& avx2_leaves() {
  static constexpr Leaves kLeaves = make_leaves<8, Multiply>();
  return kLeaves;
}
}  // namespace hpqf::kernels
