#include "hpqf/kernels/tensor_stats.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/base/parallel.h"
#include "hpqf/kernels/choose.h"
#include "hpqf/kernels/tensor_stats_loops.h"

namespace hpqf::kernels {
#if defined(__x86_64__)
extern const TensorStatsImplementation kTensorStatsAvx2;
#endif

namespace {

constexpr int64_t kPiece = 65536;  // values: 256 KiB, well above what waking a thread costs

// The definition: one value after another, the mean first.
TensorStats reference(const float* x, int64_t n, const StatsRange& range) {
  TensorStats s;
  s.count = n;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]);
    if (std::isnan(x[i])) {
      ++s.nan;
    } else if (std::isinf(x[i])) {
      ++s.infinite;
    } else {
      s.zero += magnitude == 0;
      s.underflow += magnitude != 0 && magnitude <= range.flush;
      s.overflow += magnitude > range.largest;
      s.max_abs = std::max(s.max_abs, magnitude);
      sum += x[i];
    }
  }
  if (s.finite() == 0) return s;
  s.mean = sum / static_cast<double>(s.finite());
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    const double d = x[i] - s.mean;
    s.m2 += d * d;
    s.m3 += d * d * d;
    s.m4 += d * d * d * d;
  }
  return s;
}

// The largest bit pattern in [0, last] for which `holds`, which is true up to some point and false after it; -1: none.
template <class Holds>
int64_t last_true(int64_t last, Holds&& holds) {
  int64_t low = -1, high = last + 1;
  while (high - low > 1) {
    const int64_t mid = (low + high) / 2;
    (holds(std::bit_cast<float>(static_cast<int32_t>(mid))) ? low : high) = mid;
  }
  return low;
}

const TensorStatsImplementation& best() {
  static const TensorStatsImplementation& chosen = first_runnable(tensor_stats_implementations());
  return chosen;
}

}  // namespace

StatsRange stats_range(Format format, float scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    throw Error("the range of " + std::string(formats::name(format)) + " at scale " + std::to_string(scale),
                "a finite scale over 0", "compute it with formats::block_scale");
  }
  const int64_t largest_finite = std::bit_cast<int32_t>(std::numeric_limits<float>::max());
  const int64_t flush = last_true(largest_finite, [&](float x) { return formats::round_to(format, x / scale) == 0; });
  const int64_t largest = last_true(
      largest_finite, [&](float x) { return std::isfinite(x / scale) && !formats::overflows(format, x / scale); });
  return {std::bit_cast<float>(static_cast<int32_t>(std::max<int64_t>(flush, 0))),
          std::bit_cast<float>(static_cast<int32_t>(std::max<int64_t>(largest, 0)))};
}

double TensorStats::sum_of_squares() const { return m2 + mean * mean * static_cast<double>(finite()); }
double TensorStats::norm() const { return std::sqrt(sum_of_squares()); }
double TensorStats::variance() const { return finite() > 1 ? m2 / static_cast<double>(finite()) : 0; }
double TensorStats::kurtosis() const {
  return m2 > 0 ? m4 * static_cast<double>(finite()) / (m2 * m2) : std::numeric_limits<double>::quiet_NaN();
}

TensorStats& TensorStats::operator+=(const TensorStats& b) {
  const double na = static_cast<double>(finite()), nb = static_cast<double>(b.finite()), n = na + nb;
  if (na == 0) {
    mean = b.mean, m2 = b.m2, m3 = b.m3, m4 = b.m4;
  } else if (nb > 0) {
    const double d = b.mean - mean, d2 = d * d;
    m4 += b.m4 + d2 * d2 * na * nb * (na * na - na * nb + nb * nb) / (n * n * n) +
          6 * d2 * (na * na * b.m2 + nb * nb * m2) / (n * n) + 4 * d * (na * b.m3 - nb * m3) / n;
    m3 += b.m3 + d2 * d * na * nb * (na - nb) / (n * n) + 3 * d * (na * b.m2 - nb * m2) / n;
    m2 += b.m2 + d2 * na * nb / n;
    mean += d * nb / n;
  }
  count += b.count;
  nan += b.nan;
  infinite += b.infinite;
  zero += b.zero;
  underflow += b.underflow;
  overflow += b.overflow;
  max_abs = std::max(max_abs, b.max_abs);
  return *this;
}

TensorStats tensor_stats(const float* x, int64_t n, const StatsRange& range) {
  if (n <= kPiece) return best().piece(x, std::max<int64_t>(n, 0), range);
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  std::vector<TensorStats> parts(static_cast<size_t>(pieces));
  base::parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p)
      parts[static_cast<size_t>(p)] = best().piece(x + p * kPiece, std::min(kPiece, n - p * kPiece), range);
  });
  TensorStats all;
  for (const TensorStats& part : parts) all += part;
  return all;
}

QuantisationError& QuantisationError::operator+=(const QuantisationError& other) {
  signal += other.signal;
  noise += other.noise;
  count += other.count;
  nonzero += other.nonzero;
  flushed += other.flushed;
  lost += other.lost;
  return *this;
}

double QuantisationError::sqnr_db() const {
  if (!(signal > 0)) return std::numeric_limits<double>::quiet_NaN();
  return noise > 0 ? 10 * std::log10(signal / noise) : std::numeric_limits<double>::infinity();
}

QuantisationError quantisation_error(const float* x, const float* rounded, int64_t n) {
  const int64_t pieces = (std::max<int64_t>(n, 0) + kPiece - 1) / kPiece;
  std::vector<QuantisationError> parts(static_cast<size_t>(pieces));
  base::parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    for (int64_t p = first; p < last; ++p) {
      QuantisationError e;
      const int64_t end = std::min(n, (p + 1) * kPiece);
      for (int64_t i = p * kPiece; i < end; ++i) {
        if (!std::isfinite(x[i]) || !std::isfinite(rounded[i])) {
          ++e.lost;
          continue;
        }
        const double value = x[i], d = value - static_cast<double>(rounded[i]);
        e.signal += value * value;
        e.noise += d * d;
        e.nonzero += x[i] != 0;
        e.flushed += x[i] != 0 && rounded[i] == 0;
      }
      e.count = end - p * kPiece;
      parts[static_cast<size_t>(p)] = e;
    }
  });
  QuantisationError all;
  for (const QuantisationError& part : parts) all += part;
  return all;
}

std::span<const TensorStatsImplementation> tensor_stats_implementations() {
  static const TensorStatsImplementation list[] = {
#if defined(__x86_64__)
    kTensorStatsAvx2,
#endif
    {"portable", [] { return true; }, &stats_of_piece},
    {"ref", [] { return true; }, &reference},
  };
  return list;
}

}  // namespace hpqf::kernels
