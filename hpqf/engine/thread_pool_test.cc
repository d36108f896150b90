#include "hpqf/engine/thread_pool.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "hpqf/engine/key.h"

namespace hpqf::engine {
namespace {

TEST(ThreadPool, TheCoreRunsOnAsManyThreadsAsTorch) {
  install();
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int> seen(100);
  base::parallel_for(0, 100, 1, [&](int64_t first, int64_t last) {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    for (int64_t i = first; i < last; ++i) ++seen[size_t(i)];
  });
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(seen, std::vector<int>(100, 1));
  EXPECT_THROW(base::parallel_for(0, 100, 1, [](int64_t, int64_t) { throw std::runtime_error("inside"); }),
               std::runtime_error);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace hpqf::engine
