// Statistics of fp32 memory in one read: count, sum, central moments to the fourth, largest magnitude, and how many
// values lie outside of what a format can hold. NaN and infinity are counted apart and enter no sum.
#pragma once
#include <cstdint>
#include <span>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"

namespace hpqf::kernels {

// The magnitudes a format loses: nonzero ones up to `flush` round to zero, finite ones above `largest` overflow (they
// become infinite, or are clipped). The default loses nothing.
struct StatsRange {
  float flush = 0;
  float largest = __FLT_MAX__;
};
// Of nearest-even rounding to `format` with a scale (real = code * scale), found by asking formats::round_to itself.
// Error for a scale that is not finite and positive.
HPQF_API StatsRange stats_range(Format format, float scale = 1);

// Sums in fp64. `mean` and the moments are those of the finite values; m2, m3, m4 are sums of powers of the distance
// from the mean, which stay exact where raw sums of x^4 would cancel (weights of a norm layer: mean 1, deviation 0.01).
struct HPQF_API TensorStats {
  int64_t count = 0;  // all values
  int64_t nan = 0, infinite = 0, zero = 0;
  int64_t underflow = 0, overflow = 0;  // against a StatsRange; finite values only
  double mean = 0, m2 = 0, m3 = 0, m4 = 0;
  float max_abs = 0;  // of the finite values

  int64_t finite() const { return count - nan - infinite; }
  double sum() const { return mean * static_cast<double>(finite()); }
  double sum_of_squares() const;
  double norm() const;      // 2-norm of the finite values
  double variance() const;  // of the population; 0 for fewer than two finite values
  double kurtosis() const;  // m4 n / m2^2: 3 for a normal distribution; NaN when all values are equal
  // As if both had been read as one tensor. Chan, Golub, LeVeque (1979) and Pebay (Sandia report SAND2008-6212, 2008).
  TensorStats& operator+=(const TensorStats& other);
};

// Cost: one read of x. Runs in pieces of 65536 values through base::parallel_for and joins them in order, so that the
// result is the same for any number of threads; allocates one record a piece. x may be null when n is 0.
HPQF_API TensorStats tensor_stats(const float* x, int64_t n, const StatsRange& range = {});

// What rounding did to a tensor, from the values before and after. Positions where either is not finite are counted in
// `lost` and enter no sum.
struct QuantisationError {
  double signal = 0, noise = 0;                           // sums of x^2 and of (x - rounded)^2
  int64_t count = 0, nonzero = 0, flushed = 0, lost = 0;  // flushed: not zero before, zero after
  HPQF_API QuantisationError& operator+=(const QuantisationError& other);
  // 10 log10(signal / noise), in dB; +infinity when nothing changed, NaN without signal.
  HPQF_API double sqnr_db() const;
};
HPQF_API QuantisationError quantisation_error(const float* x, const float* rounded, int64_t n);

// The sums of one piece that fits the cache. Best first; "ref" is the definition in a loop.
struct TensorStatsImplementation {
  const char* name;
  bool (*runnable)();
  TensorStats (*piece)(const float* x, int64_t n, const StatsRange& range);
};
HPQF_API std::span<const TensorStatsImplementation> tensor_stats_implementations();

}  // namespace hpqf::kernels
