// A steady clock in nanoseconds, for durations only.
#pragma once
#include <chrono>
#include <cstdint>

namespace hpqf::base {

inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace hpqf::base
