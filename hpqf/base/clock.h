// A steady clock in nanoseconds, for durations only, and the wall clock, for telling people and other programs when.
#pragma once
#include <chrono>
#include <cstdint>

namespace hpqf::base {

inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Seconds since 1970 (UTC). It may jump: never subtract two of them to get a duration.
inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace hpqf::base
