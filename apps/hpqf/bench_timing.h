// Times of variants that take turns in one process, and their ratios with spread.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace hpqf::app {

// Process CPU time with one thread, which leaves out what other processes take of the core; wall time with several.
class BenchClock {
 public:
  explicit BenchClock(int threads) : cpu_time_(threads == 1) {}
  const char* name() const { return cpu_time_ ? "process CPU time" : "wall time"; }
  double seconds(const std::function<void()>& call) const;

 private:
  int64_t now_ns() const;
  bool cpu_time_;
};

// Seconds of each variant in each round, [variant][round]; one more round before them warms up. Within a round the
// variants run one after the other, so that a slow moment of the machine hits all of them; another one comes first each
// time, so that none always inherits the caches of the same neighbour. `on_round` hears the rounds done.
using RoundTimes = std::vector<std::vector<double>>;
RoundTimes interleave(const std::vector<std::function<void()>>& variants, int64_t rounds, const BenchClock& clock,
                      const std::function<void(int64_t)>& on_round);

// Median and quartiles; linear between the neighbours.
struct Spread {
  double median = 0, q1 = 0, q3 = 0;
};
Spread spread(std::vector<double> values);

// Of base / times, round by round: above 1 where `times` are faster.
Spread ratio(const std::vector<double>& base, const std::vector<double>& times);

}  // namespace hpqf::app
