#include "apps/hpqf/bench_timing.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "hpqf/base/clock.h"

namespace hpqf::app {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

int64_t BenchClock::now_ns() const {
  if (!cpu_time_) return base::steady_ns();
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

double BenchClock::seconds(const std::function<void()>& call) const {
  const int64_t start = now_ns();
  call();
  return static_cast<double>(now_ns() - start) * 1e-9;
}

RoundTimes interleave(const std::vector<std::function<void()>>& variants, int64_t rounds, const BenchClock& clock,
                      const std::function<void(int64_t)>& on_round) {
  RoundTimes times(variants.size());
  for (int64_t round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::size_t variant = (i + static_cast<std::size_t>(round)) % variants.size();
      const double seconds = clock.seconds(variants[variant]);
      if (round > 0) times[variant].push_back(seconds);
    }
    on_round(round);
  }
  return times;
}

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

Spread ratio(const std::vector<double>& base, const std::vector<double>& times) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < base.size(); ++i) ratios.push_back(base[i] / times[i]);
  return spread(std::move(ratios));
}

}  // namespace hpqf::app
