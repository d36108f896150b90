#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "apps/hpqf/cost_inputs.h"
#include "hpqf/base/clock.h"
#include "hpqf/device/device.h"
#include "hpqf/engine/rates.h"

namespace hpqf::app {
namespace {

// Beyond the last-level cache of most sockets, and done in tens of milliseconds.
constexpr int64_t kCopyBytes = int64_t{256} << 20;
constexpr int kCopies = 5;

// Bytes read and written by the best of some copies, with all threads.
double copy_bytes_per_second() {
  const auto from = std::make_unique_for_overwrite<char[]>(kCopyBytes);
  const auto to = std::make_unique_for_overwrite<char[]>(kCopyBytes);
  std::memset(from.get(), 1, kCopyBytes);
  std::memset(to.get(), 1, kCopyBytes);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCopies; ++i) {
    const int64_t begin = base::steady_ns();
    at::parallel_for(0, kCopyBytes, 1 << 20, [&](int64_t a, int64_t b) {
      std::memcpy(to.get() + a, from.get() + a, static_cast<size_t>(b - a));
    });
    best = std::min(best, static_cast<double>(base::steady_ns() - begin) * 1e-9);
  }
  return 2.0 * kCopyBytes / best;
}

}  // namespace

cost::DeviceRates this_device(const std::vector<std::string>& formats) {
  // Forward and both backward products of a layer of 1024 rows, inputs and outputs.
  const engine::ProblemShape shape{"linear", {1024, 1024}, {1024, 1024}, {}, false, 2.0 * 1024 * 1024 * 1024};
  const std::string how = fmt::format("linear layer 1024x1024x1024, {} threads, timed here", at::get_num_threads());
  cost::DeviceRates d;
  d.id = "this";
  d.name = device::cpu().brand;
  const auto add = [&](const std::string& text) {
    const BlockFormat block = formats::parse_block_format(text);
    if (d.find(block.format)) return;
    const engine::Rate rate = engine::rate(shape, block);
    if (rate.refused.empty() && rate.seconds > 0)
      d.formats.push_back({block.format, {3 * shape.flops / rate.seconds, cost::Basis::measured, how}, 0});
  };
  add("fp32");
  for (const std::string& format : formats) add(format);
  d.bandwidth = {copy_bytes_per_second(), cost::Basis::measured, "copy of 256 MiB, timed here"};
  d.bandwidth_achievable = {1, cost::Basis::measured, "the copy"};
  d.casts_in_rates = true;
  d.launch = {2e-6, cost::Basis::assumed, "an op of torch on a CPU"};
  return d;
}

}  // namespace hpqf::app
