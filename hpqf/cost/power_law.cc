#include "hpqf/cost/power_law.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpqf::cost {
namespace {

constexpr double kLeastC = 0.02, kMostC = 3;
constexpr int kGrid = 48, kReweightings = 8, kRefinements = 24;

double median(std::vector<double> values) {
  const size_t n = values.size(), half = n / 2;
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double high = values[half];
  if (n % 2) return high;
  return (high + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

double spread(std::span<const double> residuals) {
  std::vector<double> sizes(residuals.begin(), residuals.end());
  for (double& r : sizes) r = std::abs(r);
  return 1.4826 * median(std::move(sizes));
}

struct Line {
  double a = 0, b = 0, loss = std::numeric_limits<double>::infinity();
};

// y = a + b x by iteratively reweighted least squares with Huber's weights: 1 within k of the line, k / |r| beyond.
Line robust_line(std::span<const CurveBin> bins, std::span<const double> x, double k) {
  std::vector<double> weights;
  for (const CurveBin& bin : bins) weights.push_back(bin.weight);
  Line line;
  for (int round = 0; round < kReweightings; ++round) {
    double w = 0, wx = 0, wy = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      w += weights[i];
      wx += weights[i] * x[i];
      wy += weights[i] * bins[i].value;
    }
    const double mean_x = wx / w, mean_y = wy / w;
    double xx = 0, xy = 0;
    for (size_t i = 0; i < bins.size(); ++i) {
      xx += weights[i] * (x[i] - mean_x) * (x[i] - mean_x);
      xy += weights[i] * (x[i] - mean_x) * (bins[i].value - mean_y);
    }
    line.b = xx > 0 ? std::max(0.0, xy / xx) : 0;
    line.a = mean_y - line.b * mean_x;
    for (size_t i = 0; i < bins.size(); ++i) {
      const double r = std::abs(bins[i].value - line.a - line.b * x[i]);
      weights[i] = bins[i].weight * (r > k ? k / r : 1);
    }
  }
  line.loss = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    const double r = std::abs(bins[i].value - line.a - line.b * x[i]);
    line.loss += bins[i].weight * (r > k ? k * (2 * r - k) : r * r);
  }
  return line;
}

// The noise between neighbours, whatever the curve: the spread of second differences, over sqrt(6) as for equal and
// independent errors.
double neighbour_noise(std::span<const CurveBin> bins) {
  std::vector<double> second;
  for (size_t i = 2; i < bins.size(); ++i)
    second.push_back((bins[i].value - 2 * bins[i - 1].value + bins[i - 2].value) / std::sqrt(6.0));
  return second.empty() ? 0 : spread(second);
}

}  // namespace

std::vector<CurveBin> bins(std::span<const CurvePoint> points, size_t most) {
  std::vector<CurvePoint> sorted;
  for (const CurvePoint& p : points)
    if (std::isfinite(p.value) && std::isfinite(p.step) && p.step >= 1) sorted.push_back(p);
  if (sorted.empty()) return {};
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
  const double last = sorted.back().step;
  std::erase_if(sorted, [&](const CurvePoint& p) { return p.step < last / 100; });
  const double first = sorted.front().step;
  const double growth = std::pow(last / first, 1.0 / most);

  std::vector<CurveBin> result;
  size_t begin = 0;
  while (begin < sorted.size()) {
    const double end_step = std::max(sorted[begin].step * growth, sorted[begin].step + 1);
    size_t end = begin;
    std::vector<double> steps, values;
    // The last point belongs to the last bin, whatever rounding did to its border.
    while (end < sorted.size() && (sorted[end].step < end_step || sorted[end].step == last)) {
      steps.push_back(sorted[end].step);
      values.push_back(sorted[end].value);
      ++end;
    }
    // Weight with the square root of the number: errors of neighbouring steps are not independent.
    result.push_back({median(steps), median(values), std::sqrt(double(end - begin))});
    begin = end;
  }
  return result;
}

PowerLaw fit_power_law(std::span<const CurveBin> bins) {
  const double lowest =
      std::min_element(bins.begin(), bins.end(), [](auto& x, auto& y) { return x.value < y.value; })->value;
  const double highest =
      std::max_element(bins.begin(), bins.end(), [](auto& x, auto& y) { return x.value < y.value; })->value;
  // 1.345 spreads: 95 % as efficient as least squares on normal errors (Huber). Exact data have no noise to be robust
  // to.
  const double k = std::max(1.345 * neighbour_noise(bins), 1e-9 * (highest - lowest) + 1e-300);
  std::vector<double> x(bins.size());
  const double scale = bins.back().step;
  const auto line_for = [&](double log_c) {
    const double c = std::exp(log_c);
    for (size_t i = 0; i < bins.size(); ++i) x[i] = std::pow(bins[i].step / scale, -c);
    return robust_line(bins, x, k);
  };
  const double from = std::log(kLeastC), width = (std::log(kMostC) - from) / kGrid;
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= kGrid; ++i) {
    const double loss = line_for(from + i * width).loss;
    if (loss < least) least = loss, best = i;
  }
  // Ternary search between the neighbours of the best point of the grid.
  double low = from + std::max(best - 1, 0) * width, high = from + std::min(best + 1, kGrid) * width;
  for (int i = 0; i < kRefinements; ++i) {
    const double third = (high - low) / 3;
    if (line_for(low + third).loss <= line_for(high - third).loss) {
      high -= third;
    } else {
      low += third;
    }
  }
  const double log_c = (low + high) / 2;
  const Line line = line_for(log_c);
  PowerLaw fit{line.a, line.b, std::exp(log_c), 0};
  fit.b = line.b * std::pow(scale, fit.c);
  std::vector<double> residuals;
  for (const CurveBin& bin : bins) residuals.push_back(bin.value - fit.at(bin.step));
  fit.sigma = spread(residuals);
  return fit;
}

}  // namespace hpqf::cost
