// A number and what it rests on. Every number a user sees from this room carries its basis.
#pragma once
#include <cstdint>
#include <string>

#include "hpqf/base/export.h"

namespace hpqf::cost {

enum class Basis : uint8_t {
  measured,  // here, on this machine or in this run
  quoted,    // published by somebody else, who is named
  modelled,  // computed from other figures
  assumed,   // nobody measured it: a default that the user may replace
  given,     // by the user
};
HPQF_API const char* name(Basis basis);

struct Figure {
  double value = 0;
  Basis basis = Basis::assumed;
  std::string source;  // where it comes from, in a few words
};

// A statement that a result rests on, as it is shown beside the result.
struct Assumption {
  Basis basis = Basis::assumed;
  std::string text;
};

// low <= mid <= high.
struct Band {
  double low = 0, mid = 0, high = 0;
};

}  // namespace hpqf::cost
