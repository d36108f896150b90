// Labels drawn from the model's own softmax: with them the mean of squared gradients is the true Fisher information,
// whose quadratic form is the expected KL divergence in nats. With the true labels it is not, and it vanishes on a
// model that fits its data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace hpqf::engine::sensitivity {

// The scores of the classes as [N, C], row by row those of target.flatten(): target must hold integers, output one more
// dimension of classes, last ([.., C]) or second ([B, C, ..]), or be flat already ([N, C]). Else nothing.
std::optional<at::Tensor> class_scores(const at::Tensor& output, const at::Tensor& target);

// One class for each row of softmax(scores); counter-based: row i draws from (seed, first_row + i). Rows whose target
// is negative (ignored by losses) get -100.
at::Tensor sample_labels(const at::Tensor& scores, const at::Tensor& target, uint64_t seed, uint64_t first_row);

}  // namespace hpqf::engine::sensitivity
