#include "hpqf/engine/peaks.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hpqf/base/clock.h"
#include "hpqf/device/device.h"
#include "hpqf/engine/rates.h"

namespace hpqf::engine {
namespace {

constexpr int64_t kSize = 1024;
constexpr double kFlops = 3.0 * 2 * kSize * kSize * kSize;  // forward, dgrad, wgrad

double copy_bandwidth() {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const at::Tensor from = at::zeros({kBytes / 4}, at::kFloat);
  at::Tensor to = at::empty({kBytes / 4}, at::kFloat);
  to.copy_(from);  // its pages come into being here
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const int64_t start = base::steady_ns();
    to.copy_(from);
    best = std::min(best, static_cast<double>(base::steady_ns() - start) * 1e-9);
  }
  return 2.0 * kBytes / best;  // one read, one write
}

}  // namespace

observe::RateTable measure_peaks() {
  const ProblemShape layer{"linear", {kSize, kSize}, {kSize, kSize}, {}, false, kFlops / 3};
  observe::RateTable table;
  table.device = device::cpu().brand;
  const int threads = at::get_num_threads();
  for (Format format : {Format::fp32, Format::bf16, Format::fp16, Format::int8, Format::int12}) {
    const Rate measured = rate(layer, formats::default_block(format));
    if (!measured.refused.empty() || !(measured.seconds > 0)) continue;
    table.peaks[format] = {kFlops / measured.seconds, "measured",
                           fmt::format("linear layer {0}x{0}x{0}, forward and backward, {1} threads", kSize, threads)};
  }
  table.bandwidth = observe::PeakRate{copy_bandwidth(), "measured", fmt::format("copy of 64 MiB, {} threads", threads)};
  return table;
}

}  // namespace hpqf::engine
