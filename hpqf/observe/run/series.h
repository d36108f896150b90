// A curve of any length in bounded memory: neighbouring points share a bucket that keeps what a chart needs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe {

class HPQF_API Series {
 public:
  struct Bucket {
    int64_t first = 0, last = 0;       // steps
    int64_t count = 0, nonfinite = 0;  // finite points and the others; min, max and sum are of the finite ones
    double min = std::numeric_limits<double>::infinity(), max = -std::numeric_limits<double>::infinity(), sum = 0;
    double mean() const { return sum / static_cast<double>(count); }  // NaN without a finite point
    double middle() const { return 0.5 * (static_cast<double>(first) + static_cast<double>(last)); }
  };

  // At most `most` buckets (an even number). While no more than that many points came, each has its own. Then pairs of
  // buckets merge and each takes twice as many points from there on: between most / 2 and most buckets, of equal size.
  explicit Series(size_t most = 512) : most_(most) {}

  // Steps rise. One that does not comes from a run that went back to a checkpoint: what was there of it and of later
  // steps is dropped first (to the precision of a bucket).
  void add(int64_t step, double value);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  bool empty() const { return buckets_.empty(); }
  int64_t points() const { return points_; }        // finite or not
  int64_t nonfinite() const { return nonfinite_; }  // NaN and infinities among them
  int64_t per_bucket() const { return width_; }
  double last() const { return last_; }  // value of the last point; NaN when there is none

 private:
  void rewind(int64_t step);
  size_t most_;
  int64_t width_ = 1, points_ = 0, nonfinite_ = 0;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<Bucket> buckets_;
};

// The means of the buckets, smoothed without delay: an exponential moving average that forgets over about `span` (a
// share of all buckets, at least one), forwards and then backwards, each corrected for its start. Buckets without a
// finite point repeat their neighbour; all NaN when there is no finite point.
HPQF_API std::vector<double> smoothed(const Series& series, double span);

}  // namespace hpqf::observe
