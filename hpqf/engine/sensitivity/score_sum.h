// One operand of one layer in one format: sums over the terms seen so far.
#pragma once
#include <ATen/core/Tensor.h>

#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine::sensitivity {

class ScoreSum {
 public:
  // Sums inside each term, fp64 on the CPU: of the loss whose squares make the score, and of the true one, both for a
  // loss summed over terms.
  void add_terms(const at::Tensor& sums, const at::Tensor& true_sums);
  void add_error(const at::Tensor& rounded_minus_exact, const at::Tensor& exact);
  double squared_error() const { return error_; }

  // Per term of the loss, of which there were `loss_terms`.
  plan::FormatScore result(plan::Operand operand, const BlockFormat& format, double loss_terms) const;

 private:
  int64_t terms_ = 0;
  double half_squares_ = 0, half_squares_squared_ = 0;  // of e^2 / 2
  double first_ = 0, first_squared_ = 0;
  double error_ = 0, norm_ = 0;
  bool finite_ = true;
};

}  // namespace hpqf::engine::sensitivity
