// Arrays between guard values, and a thread pool that is none, for the tests of kernels.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "hpqf/base/parallel.h"

namespace hpqf::kernels::testing_support {

inline constexpr double kUnit = 0x1p-24;  // half a unit in the last place of 1, the unit of all bounds

class Guarded {  // n floats, zero at first
 public:
  explicit Guarded(int64_t n) : n_(n), data_(n + 2 * kGuards, kGuard) {
    for (int64_t i = 0; i < n; ++i) get()[i] = 0.0f;
  }
  Guarded(const std::vector<float>& values) : Guarded(static_cast<int64_t>(values.size())) {
    for (int64_t i = 0; i < n_; ++i) get()[i] = values[i];
  }
  static Guarded normal(int64_t n, std::mt19937& random, float spread = 1.0f, float mean = 0.0f) {
    Guarded array(n);
    std::normal_distribution<float> distribution(mean, spread);
    for (int64_t i = 0; i < n; ++i) array.get()[i] = distribution(random);
    return array;
  }
  int64_t size() const { return n_; }
  float* get() { return data_.data() + kGuards; }
  float operator[](int64_t i) const { return data_[kGuards + i]; }
  bool intact() const {
    for (int64_t i = 0; i < kGuards; ++i) {
      if (data_[i] != kGuard || data_[kGuards + n_ + i] != kGuard) return false;
    }
    return true;
  }
  bool operator==(const Guarded&) const = default;

 private:
  static constexpr float kGuard = 12345.0f;
  static constexpr int64_t kGuards = 16;
  int64_t n_;
  std::vector<float> data_;
};

// The finest split there is, backwards, while it lives.
struct Splitting {
  Splitting() {
    base::set_parallel_backend([](int64_t begin, int64_t end, int64_t, const base::RangeBody& body) {
      for (int64_t i = end - 1; i >= begin; --i) body(i, i + 1);
    });
  }
  ~Splitting() { base::set_parallel_backend(nullptr); }
};

// A suite over the indices of a list of implementations.
template <class List, class... Parameters>
auto over(const List& list, Parameters... parameters) {
  return testing::Combine(testing::Range(0, static_cast<int>(list.size())), parameters...);
}

}  // namespace hpqf::kernels::testing_support
