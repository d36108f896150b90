// Loss and accuracy over one pass of a loader.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "hpqf/train/step.h"

namespace torch::nn {
class Module;
}

namespace hpqf::train {

struct EvalResult {
  double loss = 0;                 // mean over samples
  std::optional<double> accuracy;  // share of targets hit by the largest output; unset when targets are not classes
  int64_t samples = 0;
};

struct Hits {
  int64_t right = 0, total = 0;
};
// Nothing unless `target` holds integer classes that `output` has scores for: [B, C] and [B]; [B, T, C] and [B, T];
// [B * T, C] and [B, T]; [B, C, H, W] and [B, H, W]. Negative targets (ignore_index) are not counted.
HPQF_API std::optional<Hits> count_hits(const at::Tensor& output, const at::Tensor& target);

// In eval mode, without gradients; each module's mode, torch's generator and the loader's position are put back after.
// Error when the loader has no batch.
HPQF_API EvalResult evaluate(torch::nn::Module& model, const Forward& forward, const LossFn& loss, Loader& loader);

}  // namespace hpqf::train
