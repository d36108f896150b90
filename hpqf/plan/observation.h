// Statistics made from events, as values: what policies read.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hpqf/plan/role.h"

namespace hpqf::plan {

// Casts of one layer and role during one step, in the order in which the step reached them.
struct CastObservation {
  std::string layer;
  Role role = Role::input;
  std::string format;
  int64_t elements = 0;
  int64_t nonfinite_in = 0;  // NaN/infinity already in the source of the cast
  int64_t overflow = 0;      // finite before, infinite or clipped after
};

struct Observations {
  int64_t step = 0;
  bool skipped = false;
  std::vector<CastObservation> casts;
  std::vector<std::string> nonfinite_gradients;  // layers whose weight gradient was non-finite, definition order
};

}  // namespace hpqf::plan
