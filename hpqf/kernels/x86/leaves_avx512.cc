#include <immintrin.h>

#include "hpqf/kernels/lanes_leaves.h"

namespace hpqf::kernels {
namespace {
struct Multiply {
  using U = WideLanes<16>::U;
  // The masked form with every lane on is the same instruction; the plain one of GCC 12 warns of uninitialised lanes.
  [[gnu::always_inline]] static U low_halves(const U& a, const U& b) {
    return as<U>(_mm512_maskz_mul_epu32(0xff, as<__m512i>(a), as<__m512i>(b)));
  }
};
}  // namespace

const Leaves& avx512_leaves() {
  static constexpr Leaves kLeaves = make_leaves<16, Multiply>();
  return kLeaves;
}
}  // namespace hpqf::kernels
