#include "hpqf/train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

#include "hpqf/base/error.h"
#include "hpqf/train/checkpoint.h"

namespace hpqf::train {
namespace {

// train(false) on the whole model, and each module's own flag back at the end: some may have been frozen in eval mode.
class EvalMode {
 public:
  explicit EvalMode(torch::nn::Module& model) : generator_(generator_state()) {
    for (const auto& module : model.modules(/*include_self=*/false))
      modes_.emplace_back(module.get(), module->is_training());
    root_ = {&model, model.is_training()};
    model.eval();
  }
  ~EvalMode() {
    root_.first->train(root_.second);
    for (const auto& [module, training] : modes_) module->train(training);  // parents come before their children
    set_generator_state(generator_);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  std::pair<torch::nn::Module*, bool> root_;
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;
  at::Tensor generator_;
};

}  // namespace

std::optional<Hits> count_hits(const at::Tensor& output, const at::Tensor& target) {
  if (!target.defined() || !at::isIntegralType(target.scalar_type(), false) || output.dim() < 2) return std::nullopt;
  const at::IntArrayRef sizes = output.sizes();
  at::Tensor guess, wanted = target;
  if (sizes.slice(0, output.dim() - 1) == target.sizes()) {
    guess = output.argmax(-1);
  } else if (output.dim() == 2 && output.size(0) == target.numel()) {
    guess = output.argmax(-1);
    wanted = target.reshape({-1});
  } else if (output.dim() == target.dim() + 1 && sizes[0] == target.size(0) &&
             sizes.slice(2) == target.sizes().slice(1)) {
    guess = output.argmax(1);
  } else {
    return std::nullopt;
  }
  return Hits{guess.eq(wanted).sum().item<int64_t>(), wanted.ge(0).sum().item<int64_t>()};
}

EvalResult evaluate(torch::nn::Module& model, const Forward& forward, const LossFn& loss, Loader& loader) {
  at::NoGradGuard no_grad;
  const EvalMode eval_mode(model);
  const LoaderState position = loader.state();
  EvalResult result;
  Hits hits;
  bool classes = true;
  loader.begin_epoch(0);
  while (std::optional<Batch> batch = loader.next()) {
    const at::Tensor output = forward(batch->data);
    result.loss += loss(output, batch->target).item<double>() * static_cast<double>(batch->size());
    result.samples += batch->size();
    const std::optional<Hits> here = classes ? count_hits(output, batch->target) : std::nullopt;
    classes = here.has_value();
    if (here) hits = {hits.right + here->right, hits.total + here->total};
  }
  // A loader that stands at the start of an epoch is sent to it by whoever uses it next.
  if (position.batch > 0) loader.restore(position);
  if (result.samples == 0)
    throw Error("to evaluate on a loader without batches", "at least one batch", "check the data set");
  result.loss /= static_cast<double>(result.samples);
  if (classes && hits.total > 0) result.accuracy = static_cast<double>(hits.right) / static_cast<double>(hits.total);
  return result;
}

}  // namespace hpqf::train
