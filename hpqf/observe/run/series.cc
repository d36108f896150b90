#include "hpqf/observe/run/series.h"

#include <algorithm>
#include <cmath>

namespace hpqf::observe {

void Series::rewind(int64_t step) {
  while (!buckets_.empty() && buckets_.back().last >= step) {
    points_ -= buckets_.back().count + buckets_.back().nonfinite;
    nonfinite_ -= buckets_.back().nonfinite;
    buckets_.pop_back();
  }
}

void Series::add(int64_t step, double value) {
  if (!buckets_.empty() && step <= buckets_.back().last) rewind(step);
  const auto full = [this](const Bucket& b) { return b.count + b.nonfinite >= width_; };
  if (buckets_.empty() || full(buckets_.back())) {
    if (buckets_.size() >= most_) {
      for (size_t i = 0; i < buckets_.size() / 2; ++i) {
        Bucket merged = buckets_[2 * i];
        const Bucket& next = buckets_[2 * i + 1];
        merged.last = next.last;
        merged.count += next.count;
        merged.nonfinite += next.nonfinite;
        merged.min = std::min(merged.min, next.min);
        merged.max = std::max(merged.max, next.max);
        merged.sum += next.sum;
        buckets_[i] = merged;
      }
      buckets_.resize(buckets_.size() / 2);
      width_ *= 2;
    }
    buckets_.push_back({.first = step, .last = step});
  }
  Bucket& bucket = buckets_.back();
  bucket.last = step;
  last_ = value;
  ++points_;
  if (!std::isfinite(value)) {
    ++bucket.nonfinite;
    ++nonfinite_;
    return;
  }
  ++bucket.count;
  bucket.sum += value;
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
}

namespace {

// In place; NaN takes no part and gets the average there.
void average(std::vector<double>& values, double keep, bool backwards) {
  double average = 0, weight = 0;  // Adam's correction: the weights so far do not add up to one
  for (size_t i = 0; i < values.size(); ++i) {
    double& value = values[backwards ? values.size() - 1 - i : i];
    if (!std::isnan(value)) {
      average = keep * average + (1 - keep) * value;
      weight = keep * weight + (1 - keep);
    }
    value = weight > 0 ? average / weight : std::nan("");
  }
}

}  // namespace

std::vector<double> smoothed(const Series& series, double span) {
  const std::vector<Series::Bucket>& buckets = series.buckets();
  const double keep = 1 - 1 / std::max(1.0, 0.5 * span * static_cast<double>(buckets.size()));
  std::vector<double> out;
  for (const Series::Bucket& bucket : buckets) out.push_back(bucket.count > 0 ? bucket.mean() : std::nan(""));
  average(out, keep, false);
  average(out, keep, true);
  return out;
}

}  // namespace hpqf::observe
