#include "hpqf/train/accumulate.h"

#include <ATen/core/grad_mode.h>

namespace hpqf::train {

void GradientSum::flush() {
  at::NoGradGuard no_grad;
  outer_.resize(parameters_.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& grad = parameters_[i].tensor.mutable_grad();
    if (!grad.defined()) continue;
    // Out of place: sparse + dense works only this way round, and grad may be shared with the user.
    outer_[i] = outer_[i].defined() ? (outer_[i].is_sparse() ? grad.add(outer_[i]) : outer_[i].add(grad)) : grad;
    grad = at::Tensor();
  }
}

void GradientSum::after_backward() {
  if (++count_ % kInner == 0) flush();
}

void GradientSum::finish() {
  if (outer_.empty()) return;
  flush();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (outer_[i].defined()) parameters_[i].tensor.mutable_grad() = outer_[i];
  }
}

}  // namespace hpqf::train
