// The choice from a list of implementations that is sorted best first and ends with one that runs everywhere.
#pragma once
#include <span>

namespace hpqf::kernels {

template <class Implementation>
const Implementation& first_runnable(std::span<const Implementation> list) {
  for (const Implementation& implementation : list) {
    if (implementation.runnable()) return implementation;
  }
  return list.back();
}

}  // namespace hpqf::kernels
