#include "hpqf/cost/projection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hpqf/base/random.h"
#include "hpqf/cost/power_law.h"

namespace hpqf::cost {
namespace {

constexpr size_t kBins = 64;
constexpr size_t kFewestBins = 12;
constexpr double kLeastRange = 4;  // last step over first
constexpr double kLeastFall = 3;   // of the fit over the data, in spreads of its residuals
constexpr size_t kBlock = 3;       // neighbouring residuals that are drawn together: they are not independent
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Projection cannot(std::string reason, PowerLaw fit = {}) { return {Outlook::cannot_tell, {}, fit, std::move(reason)}; }

// Residuals drawn in blocks, put on the fit, and fitted again.
double resampled_step(std::span<const CurveBin> data, const PowerLaw& fit, double target, uint64_t seed, int number) {
  std::vector<CurveBin> again(data.begin(), data.end());
  uint64_t draw = 0;
  for (size_t i = 0; i < again.size(); i += kBlock) {
    const size_t starts = data.size() - kBlock + 1;
    const uint64_t bits = base::random_bits(seed, static_cast<uint64_t>(number), draw++);
    const size_t start = static_cast<size_t>((bits * starts) >> 32);
    for (size_t j = 0; j < kBlock && i + j < again.size(); ++j) {
      // A residual moves with its bin's weight: medians of few points scatter more than those of many.
      const CurveBin& from = data[start + j];
      const double residual = (from.value - fit.at(from.step)) * std::sqrt(from.weight / again[i + j].weight);
      again[i + j].value = fit.at(again[i + j].step) + residual;
    }
  }
  return fit_power_law(again).step_for(target);
}

double quantile(std::span<const double> sorted, double q) {
  return sorted[static_cast<size_t>(std::lround(q * (sorted.size() - 1)))];
}

}  // namespace

const char* name(Outlook outlook) {
  switch (outlook) {
    case Outlook::reached:
      return "reached";
    case Outlook::projected:
      return "projected";
    case Outlook::cannot_tell:
      return "cannot tell";
  }
  return "";
}

double PowerLaw::at(double step) const { return a + b * std::pow(step, -c); }

double PowerLaw::step_for(double value) const {
  if (!(value > a) || !(b > 0)) return kInfinity;
  return std::pow(b / (value - a), 1 / c);
}

Projection project(std::span<const CurvePoint> points, double target, const ProjectionOptions& options) {
  const double sign = options.lower_is_better ? 1 : -1;
  std::vector<CurvePoint> turned(points.begin(), points.end());
  for (CurvePoint& p : turned) p.value *= sign;
  const double wanted = sign * target;

  const std::vector<CurveBin> data = bins(turned, kBins);
  for (const CurveBin& bin : data)
    if (bin.value <= wanted) return {Outlook::reached, {bin.step, bin.step, bin.step}, {}, ""};
  if (data.size() < kFewestBins)
    return cannot(
        fmt::format("too few values: {} distinct stretches of steps, {} are needed", data.size(), kFewestBins));
  const double last = data.back().step;
  if (last / data.front().step < kLeastRange)
    return cannot(fmt::format(
        "the values cover too short a part of the run: the last step is less than {} times the first", kLeastRange));

  const PowerLaw fit = fit_power_law(data);
  if (!(fit.b > 0) || fit.at(data.front().step) - fit.at(last) < kLeastFall * fit.sigma)
    return cannot("the metric does not improve by more than its noise", fit);

  std::vector<double> steps;
  for (int i = 0; i < options.resamples; ++i) steps.push_back(resampled_step(data, fit, wanted, options.seed, i));
  std::sort(steps.begin(), steps.end());
  const auto beyond = std::count(steps.begin(), steps.end(), kInfinity);
  if (beyond * 10 > options.resamples)
    return cannot(fmt::format("in {} of {} resampled fits the curve levels off before the target (fitted limit {:.4g})",
                              beyond, options.resamples, sign * fit.a),
                  fit);
  const Band band{quantile(steps, 0.1), quantile(steps, 0.5), quantile(steps, 0.9)};
  if (band.mid > options.farthest * last)
    return cannot(
        fmt::format("the target lies {:.0f} times as many steps ahead as were seen; up to {:.0f} times are answered",
                    band.mid / last, options.farthest),
        fit);
  if (!(band.high <= options.widest * band.low))
    return cannot(fmt::format("the answer could be anything from {:.0f} to {:.0f} steps", band.low, band.high), fit);
  return {Outlook::projected, band, fit, ""};
}

}  // namespace hpqf::cost
