#include "hpqf/engine/sensitivity/score_sum.h"

#include <ATen/ops/sum.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpqf::engine::sensitivity {
namespace {

// Of the sum of n independent values with this sum and sum of squares.
double stderr_of_sum(double sum, double squares, double n) {
  if (n < 2) return 0;
  return std::sqrt(std::max(0.0, squares - sum * sum / n) * n / (n - 1));
}

double square_sum(const at::Tensor& t) { return at::sum(t.square(), at::kDouble).item<double>(); }

}  // namespace

void ScoreSum::add_terms(const at::Tensor& sums, const at::Tensor& true_sums) {
  const double *e = sums.const_data_ptr<double>(), *f = true_sums.const_data_ptr<double>();
  terms_ += sums.numel();
  for (int64_t i = 0; i < sums.numel(); ++i) {
    if (!std::isfinite(e[i]) || !std::isfinite(f[i])) {
      finite_ = false;
      return;
    }
    const double half = 0.5 * e[i] * e[i];
    half_squares_ += half, half_squares_squared_ += half * half;
    first_ += f[i], first_squared_ += f[i] * f[i];
  }
}

void ScoreSum::add_error(const at::Tensor& rounded_minus_exact, const at::Tensor& exact) {
  error_ += square_sum(rounded_minus_exact), norm_ += square_sum(exact);
}

plan::FormatScore ScoreSum::result(plan::Operand operand, const BlockFormat& format, double loss_terms) const {
  plan::FormatScore s{.operand = operand, .format = format};
  s.terms = terms_;
  const double n = double(terms_);
  // The sum has the error of its terms times sqrt(n).
  const double score = half_squares_ / loss_terms;
  if (!finite_ || !std::isfinite(score) || !std::isfinite(half_squares_squared_)) {
    s.score = std::numeric_limits<double>::infinity();
  } else {
    s.score = score;
    s.standard_error = stderr_of_sum(half_squares_, half_squares_squared_, n) / loss_terms;
    s.first_order = first_ / loss_terms;
    s.first_order_stderr = stderr_of_sum(first_, first_squared_, n) / loss_terms;
  }
  if (std::isfinite(error_) && norm_ > 0) s.error = error_ / norm_;
  return s;
}

}  // namespace hpqf::engine::sensitivity
