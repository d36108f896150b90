#include "hpqf/engine/sensitivity/training_score.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>

#include "hpqf/base/error.h"
#include "hpqf/engine/runtime.h"
#include "hpqf/engine/sensitivity/frozen_state.h"
#include "hpqf/engine/sensitivity/profile.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::engine::sensitivity {

using at::Tensor;

MeanGradient mean_gradient(const GradientStep& step, int64_t batches) {
  MeanGradient mean;
  for (int64_t i = 0; i < batches; ++i) {
    double loss = 0;
    const std::vector<Tensor> g = step(i, loss);
    at::NoGradGuard no_grad;
    mean.loss += loss / double(batches);
    for (size_t k = 0; k < g.size(); ++k) {
      const Tensor part = g[k].defined() ? g[k].detach().to(at::kDouble).div(double(batches)) : Tensor();
      if (i == 0)
        mean.gradients.push_back(part);
      else if (part.defined())
        mean.gradients[k] = mean.gradients[k].defined() ? mean.gradients[k].add_(part) : part;
    }
  }
  return mean;
}

TrainingScore compare(plan::Operand operand, const BlockFormat& format, const MeanGradient& low,
                      const MeanGradient& fp32) {
  double difference = 0, norm = 0;
  for (size_t k = 0; k < fp32.gradients.size(); ++k) {
    if (!fp32.gradients[k].defined()) continue;
    norm += fp32.gradients[k].square().sum().item<double>();
    difference += low.gradients[k].defined() ? low.gradients[k].sub(fp32.gradients[k]).square().sum().item<double>()
                                             : fp32.gradients[k].square().sum().item<double>();
  }
  if (!std::isfinite(norm) || !std::isfinite(fp32.loss))
    throw Error("training scores with NaN or infinity in fp32", "finite losses and gradients",
                "measure on data and weights that give finite numbers");
  if (norm == 0)
    throw Error("training scores of a model whose gradient is zero", "gradients other than zero", "check the loss");
  TrainingScore s{operand, format, std::sqrt(difference / norm), low.loss - fp32.loss};
  if (!std::isfinite(s.bias)) s.bias = std::numeric_limits<double>::infinity();
  if (!std::isfinite(s.loss_change)) s.loss_change = std::numeric_limits<double>::infinity();
  return s;
}

PrecisionPlan single_operand_plan(plan::Operand operand, const BlockFormat& format, const std::string& layers) {
  LayerPrecision p = plan::uniform_precision("fp32", "sensitivity of one operand");
  plan::format_of(p, operand) = format;
  if (layers == "*") return PrecisionPlan({{"*", p}});
  return PrecisionPlan({{layers, p}, {"*", plan::uniform_precision("fp32")}});
}

std::vector<TrainingScore> training_scores(torch::nn::Module& model,
                                           const std::function<Tensor(const Tensor&)>& forward,
                                           const std::function<Tensor(const Tensor&, const Tensor&)>& loss,
                                           const std::vector<Example>& batches, std::vector<BlockFormat> formats,
                                           const std::function<void(const std::string&)>& on_progress) {
  if (batches.empty())
    throw Error("training scores without data", fmt::format("{} batches", kTrainingBatches), "check the data set");
  if (formats.empty()) formats = all_block_formats();
  const FrozenState frozen(model);
  std::vector<Tensor> weights;
  for (const Tensor& p : model.parameters())
    if (p.requires_grad() && p.dim() > 1) weights.push_back(p);
  if (weights.empty())
    throw Error("training scores of a model without trainable weights", "parameters that require gradients",
                "call requires_grad_() on them");
  Runtime runtime(model, PrecisionPlan());
  const GradientStep step = [&](int64_t i, double& value) {
    at::AutoGradMode gradients(true);
    const Tensor l = loss(forward(batches[size_t(i)].data), batches[size_t(i)].target);
    value = l.item<double>();
    return torch::autograd::grad({l}, weights, {}, false, false, /*allow_unused=*/true);
  };
  const int64_t count = int64_t(batches.size());
  const MeanGradient fp32 = mean_gradient(step, count);
  std::vector<TrainingScore> scores;
  for (const plan::Operand operand : plan::kOperands) {
    for (const BlockFormat& format : formats) {
      if (on_progress) on_progress(fmt::format("{} in {}", plan::name(operand), hpqf::formats::to_string(format)));
      runtime.apply(single_operand_plan(operand, format));
      scores.push_back(compare(operand, format, mean_gradient(step, count), fp32));
    }
  }
  return scores;
}

std::string training_table(const std::vector<TrainingScore>& scores) {
  observe::TextTable table({{"role"}, {"format"}, {"bias", true}, {"loss change", true}, {"score", true}});
  for (const TrainingScore& s : scores)
    table.add({plan::name(s.operand), formats::to_string(s.format), fmt::format("{:.3g}", s.bias),
               fmt::format("{:.2g}", s.loss_change), fmt::format("{:.3g}", s.score())});
  return table.text();
}

}  // namespace hpqf::engine::sensitivity
