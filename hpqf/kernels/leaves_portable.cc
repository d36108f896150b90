#include "hpqf/kernels/lanes_leaves.h"

namespace hpqf::kernels {
const Leaves& portable_leaves() {
  static constexpr Leaves kLeaves = make_leaves<4>();
  return kLeaves;
}
}  // namespace hpqf::kernels
