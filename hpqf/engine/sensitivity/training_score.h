// What one operand in one format does to training: the systematic error of the mean weight gradient, and the immediate
// change of the loss.
//
// A single batch's gradient error mixes noise, which the optimizer averages away, with bias, which it follows; the mean
// over M = 16 batches keeps the bias. admission.h says from where on a bias was seen to matter.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/sensitivity.h"

namespace torch::nn {
class Module;
}

namespace hpqf::engine {
class Runtime;
}

namespace hpqf::engine::sensitivity {

inline constexpr int64_t kTrainingBatches = 16;

struct Example {
  at::Tensor data, target;
};

// The whole model with this operand in this format, all else in fp32.
struct TrainingScore {
  plan::Operand operand = plan::Operand::weight;
  BlockFormat format;
  double bias = 0;         // ||mean gradient - that in fp32|| / ||that in fp32||; infinity when not finite
  double loss_change = 0;  // nats
  double score() const { return bias + (loss_change > 0 ? loss_change : 0); }
};

// One batch's loss and the gradients of all weights, under whatever plan is attached.
using GradientStep = std::function<std::vector<at::Tensor>(int64_t batch, double& loss)>;
struct MeanGradient {
  std::vector<at::Tensor> gradients;
  double loss = 0;
};
HPQF_API MeanGradient mean_gradient(const GradientStep& step, int64_t batches);
HPQF_API TrainingScore compare(plan::Operand operand, const BlockFormat& format, const MeanGradient& low,
                               const MeanGradient& fp32);
// The plan in which `layers` (a pattern) have this operand in this format.
HPQF_API PrecisionPlan single_operand_plan(plan::Operand operand, const BlockFormat& format,
                                           const std::string& layers = "*");

// All four operands in each format. Costs a forward and backward of each batch for each of them, and once for fp32. The
// model is left as it was; eval mode meanwhile, so that two runs differ by the format alone.
HPQF_API std::vector<TrainingScore> training_scores(
    torch::nn::Module& model, const std::function<at::Tensor(const at::Tensor&)>& forward,
    const std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>& loss, const std::vector<Example>& batches,
    std::vector<BlockFormat> formats, const std::function<void(const std::string&)>& on_progress = {});

HPQF_API std::string training_table(const std::vector<TrainingScore>& scores);

}  // namespace hpqf::engine::sensitivity
