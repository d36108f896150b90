#include "apps/hpqf/calibrate_noise.h"

#include <algorithm>
#include <cstdlib>

namespace hpqf::app {

using device::machine::to_integer;
using device::machine::words;

NoiseWatch::NoiseWatch(const device::machine::FileTree& tree, const device::machine::MachineFacts& facts)
    : tree_(tree) {
  const std::string& file = facts.limits.cpu_file;
  group_ = file.substr(0, file.rfind('/') == std::string::npos ? 0 : file.rfind('/'));
  double average = 0;
  if (getloadavg(&average, 1) == 1) load_ = average / std::max(1, facts.cpu.logical);
  before_ = read();
}

NoiseWatch::Counters NoiseWatch::read() const {
  Counters counters;
  // "cpu  user nice system idle iowait irq softirq steal ...": proc(5).
  const std::vector<std::string> stat = words(tree_.line("proc/stat").value_or(""));
  for (size_t i = 1; i < stat.size() && i <= 8; ++i) {
    const int64_t ticks = to_integer(stat[i]).value_or(0);
    counters.ticks += ticks;
    if (i == 8) counters.stolen = ticks;
  }
  if (group_.empty()) return counters;
  const std::vector<std::string> pairs = words(tree_.read(group_ + "/cpu.stat").text);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i] == "nr_periods") counters.periods = to_integer(pairs[i + 1]).value_or(0);
    if (pairs[i] == "nr_throttled") counters.throttled = to_integer(pairs[i + 1]).value_or(0);
  }
  return counters;
}

device::machine::Noise NoiseWatch::result() const {
  const Counters now = read();
  auto share = [](int64_t part, int64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  device::machine::Noise noise;
  noise.spread = spread_;
  noise.stolen = share(now.stolen - before_.stolen, now.ticks - before_.ticks);
  noise.throttled = share(now.throttled - before_.throttled, now.periods - before_.periods);
  noise.others = load_;
  noise.reasons = device::machine::noise_reasons(noise);
  return noise;
}

}  // namespace hpqf::app
