#include "hpqf/engine/native_speed.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "hpqf/device/device.h"
#include "hpqf/engine/instrument.h"
#include "hpqf/engine/scope.h"

namespace hpqf::engine {
namespace {

double seconds_of_mm(at::ScalarType type) {
  at::Tensor a = at::ones({512, 512}, type);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {  // the first pays for oneDNN's primitive
    const int64_t start = now_ns();
    at::mm(a, a);
    best = std::min(best, double(now_ns() - start) * 1e-9);
  }
  return best;
}

std::string measure(Format format) {
  const auto native = device::cpu_native(format);
  if (!native.possible) return native.reason;
  at::NoGradGuard no_grad;
  AllAutocastOff off;
  const double fp32 = seconds_of_mm(at::kFloat);
  const double low = seconds_of_mm(format == Format::bf16 ? at::kBFloat16 : at::kHalf);
  if (low < 0.95 * fp32) return "";
  return fmt::format("measured on this cpu: {:.2f}x the time of fp32 at 512x512x512", low / fp32);
}

}  // namespace

std::string cpu_slow_reason(Format format) {
  if (format == Format::bf16) {
    static const std::string bf16 = measure(Format::bf16);
    return bf16;
  }
  static const std::string fp16 = measure(Format::fp16);
  return fp16;
}

}  // namespace hpqf::engine
