#include "hpqf/base/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace hpqf::base {
namespace {

int g_calls = 0;
void halves(int64_t begin, int64_t end, int64_t, const RangeBody& body) {
  ++g_calls;
  const int64_t middle = (begin + end) / 2;
  body(middle, end);
  body(begin, middle);
}

TEST(ParallelFor, CoversTheRangeOnceWithEitherBackend) {
  for (ParallelBackend backend : {ParallelBackend{nullptr}, ParallelBackend{&halves}}) {
    set_parallel_backend(backend);
    for (int64_t n : {0, 1, 2, 7, 100}) {
      std::vector<int> seen(static_cast<size_t>(n));
      parallel_for(0, n, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(n), 1));
    }
  }
  set_parallel_backend(nullptr);
}

TEST(ParallelFor, SmallRangesStayOnTheCallingThread) {
  set_parallel_backend(&halves);
  g_calls = 0;
  parallel_for(0, 10, 10, [](int64_t, int64_t) {});
  EXPECT_EQ(g_calls, 0);
  parallel_for(0, 11, 10, [](int64_t, int64_t) {});
  EXPECT_EQ(g_calls, 1);
  set_parallel_backend(nullptr);
}

}  // namespace
}  // namespace hpqf::base
