#include "hpqf/engine/sensitivity/statistics.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/observe/text_table.h"

namespace hpqf::engine::sensitivity {

void StatisticsSum::add(const at::Tensor& t) {
  at::NoGradGuard no_grad;
  const at::Tensor flat = t.detach().cpu().to(at::kFloat).contiguous();
  const float* x = flat.const_data_ptr<float>();
  const int64_t n = flat.numel();
  if (n == 0) return;
  double s1 = 0, s2 = 0, s3 = 0, s4 = 0, top = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i], square = v * v;
    s1 += v, s2 += square, s3 += square * v, s4 += square * square;
    top = std::max(top, std::abs(v));
  }
  const double mean = s1 / double(n), limit = 6 * std::sqrt(std::max(0.0, s2 / double(n) - mean * mean));
  for (int64_t i = 0; i < n; ++i) outliers_ += std::abs(x[i] - mean) > limit;
  elements_ += n, absmax_ = std::max(absmax_, top);
  s1_ += s1, s2_ += s2, s3_ += s3, s4_ += s4;
}

std::string statistics_table(const std::vector<LayerStatistics>& statistics) {
  observe::TextTable table(
      {{"layer"}, {"role"}, {"absmax", true}, {"rms", true}, {"kurtosis", true}, {"beyond 6 sigma", true}});
  for (const LayerStatistics& s : statistics)
    table.add({s.layer.empty() ? "(model)" : s.layer, plan::name(s.role), fmt::format("{:.3g}", s.values.absmax),
               fmt::format("{:.3g}", s.values.rms), fmt::format("{:.3g}", s.values.kurtosis),
               fmt::format("{:.2g}", s.values.beyond_six_sigma)});
  return table.text();
}

Statistics StatisticsSum::result() const {
  Statistics r{.elements = elements_, .absmax = absmax_};
  if (elements_ == 0) return r;
  const double n = double(elements_), m = s1_ / n, e2 = s2_ / n, e3 = s3_ / n, e4 = s4_ / n;
  const double variance = std::max(0.0, e2 - m * m);
  r.rms = std::sqrt(e2);
  r.kurtosis = variance > 0 ? (e4 - 4 * m * e3 + 6 * m * m * e2 - 3 * m * m * m * m) / (variance * variance) : 0;
  r.beyond_six_sigma = double(outliers_) / n;
  return r;
}

}  // namespace hpqf::engine::sensitivity
