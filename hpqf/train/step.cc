#include "hpqf/train/step.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/optim/optimizer.h>

#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/engine/auto_plan.h"
#include "hpqf/engine/census.h"
#include "hpqf/train/accumulate.h"
#include "hpqf/train/gradient_monitor.h"

namespace hpqf::train {
namespace {

// Steps on which ops the engine does not count are timed: the third, when caches are warm, and one in 500 after it. A
// census costs about 0.2 us an op.
constexpr int64_t kCensusEvery = 500, kCensusFirst = 2;

// torch's own text for a batch that batch norm cannot train on.
constexpr std::string_view kOneValuePerChannel = "Expected more than 1 value per channel when training";

at::Tensor forward(const Forward& model, const Batch& batch) {
  try {
    return model(batch.data);
  } catch (const c10::Error& e) {
    if (std::string_view(e.what_without_backtrace()).find(kOneValuePerChannel) == std::string_view::npos) throw;
    throw Error(fmt::format("a training step on {} sample(s) through batch norm", batch.size()),
                "more than one value per channel, or there is no variance",
                "set drop_last, choose another batch size, or put the batch norm layers into eval mode");
  }
}

at::Tensor scalar_loss(const LossFn& loss_fn, const at::Tensor& output, const Batch& batch) {
  at::Tensor loss = loss_fn(output, batch.target);
  if (!loss.defined() || loss.numel() != 1) {
    throw Error(
        loss.defined() ? fmt::format("a loss of shape [{}]", fmt::join(loss.sizes(), ", ")) : "an undefined loss",
        "one value: the mean over the batch", "reduce it, e.g. with .mean()");
  }
  return loss.reshape({});
}

// The first cast of the step that shows trouble; the rest is consequence. Saturating formats clip and go on, so their
// overflows are no cause of a skipped step.
std::string first_bad_cast(const plan::Observations& observations) {
  for (const plan::CastObservation& cast : observations.casts) {
    const std::string where =
        fmt::format("{} of {}", plan::name(cast.role), cast.layer.empty() ? "the model" : "layer " + cast.layer);
    if (cast.nonfinite_in > 0)
      return fmt::format("{}: {} values already non-finite before {}", where, cast.nonfinite_in, cast.format);
    const bool saturates = formats::info(formats::parse_block_format(cast.format).format).saturates;
    if (cast.overflow > 0 && !saturates)
      return fmt::format("{}: {} finite values overflowed {}", where, cast.overflow, cast.format);
  }
  return "";
}

}  // namespace

TrainStep::TrainStep(StepParts parts) : parts_(std::move(parts)) {
  if (!parts_.forward || !parts_.loss || !parts_.optimizer || !parts_.scaler) {
    throw Error("a training step without model, loss, optimizer or loss scaler", "all four", "set them in StepParts");
  }
}

StepResult TrainStep::run(std::span<const Batch> micro_batches) {
  if (micro_batches.empty()) throw Error("a training step on no batch", "at least one", "check the loader");
  const int64_t start = base::steady_ns();
  StepResult result{.step = counters.step + 1, .loss_scale = parts_.scaler->scale_value()};
  if (parts_.runtime) result.plan_epoch = parts_.runtime->plan().epoch();
  std::optional<engine::OpCensus> census;
  if (parts_.audit && counters.step % kCensusEvery == kCensusFirst) census.emplace();
  set_learning_rates(*parts_.optimizer, parts_.base_lr, parts_.schedule, counters.applied);
  result.lr = learning_rates(*parts_.optimizer).front();

  // Forward, loss, backward.
  zero_gradients();
  std::tie(result.loss, result.samples) = forward_backward(micro_batches);

  // Unscale and check, clip, step.
  GradientHealth health;
  StepStatus status;
  {
    engine::Passthrough fp32;  // gradients and optimizer arithmetic follow no plan
    health = parts_.scaler->unscale_and_check(*parts_.optimizer);
    const bool watched = parts_.monitor && parts_.monitor->due(result.step);
    if (watched) look_at_gradients(result.step);
    if (parts_.max_grad_norm > 0)
      result.grad_norm = parts_.scaler->clip_grad_norm(*parts_.optimizer, parts_.max_grad_norm);
    status = parts_.scaler->step(*parts_.optimizer);
    if (watched) parts_.monitor->updated(parts_.parameters);
  }

  // Observe.
  plan::Observations observations;
  if (parts_.audit) observations = parts_.audit->take_observations(result.step);
  observations.step = result.step;
  observations.skipped = !health.finite;
  observations.nonfinite_gradients = health.layers;
  result.applied = status.applied;
  result.cause = status.cause;
  if (!health.finite) {
    if (const std::string cast = first_bad_cast(observations); !cast.empty()) result.cause = cast + "; " + result.cause;
  }

  // Decide, at the step boundary.
  if (parts_.runtime) {
    result.changes = react(observations);
    parts_.runtime->follow_ranges();
    if (result.step >= parts_.settle_after) {
      std::string chosen = engine::settle(*parts_.runtime, sensitivity ? &*sensitivity : nullptr);
      if (!chosen.empty()) result.changes.push_back(std::move(chosen));
    }
  }
  if (std::string reason = parts_.scaler->update(); !reason.empty()) result.changes.push_back(std::move(reason));

  counters.step += 1;
  counters.applied += result.applied;
  result.seconds = static_cast<double>(base::steady_ns() - start) * 1e-9;
  if (parts_.audit) parts_.audit->add_step(result.seconds);
  if (census) parts_.audit->add_uncounted(census->finish());
  return result;
}

void TrainStep::look_at_gradients(int64_t step) {
  static const plan::ModelFacts kNone;
  const engine::Runtime* runtime = parts_.runtime;
  parts_.monitor->gradients(step, parts_.parameters, runtime ? &runtime->plan() : nullptr,
                            runtime ? runtime->facts() : kNone);
}

void TrainStep::zero_gradients() {
  // Frozen and forgotten parameters too: their gradients would grow from step to step.
  for (const LayerParameter& p : parts_.parameters) p.tensor.mutable_grad() = at::Tensor();
  parts_.optimizer->zero_grad();
}

std::pair<double, int64_t> TrainStep::forward_backward(std::span<const Batch> micro_batches) {
  int64_t samples = 0;
  for (const Batch& batch : micro_batches) samples += batch.size();
  GradientSum sum(parts_.parameters);
  double mean = 0;
  for (const Batch& batch : micro_batches) {
    const double share = static_cast<double>(batch.size()) / static_cast<double>(samples);
    const at::Tensor loss = scalar_loss(parts_.loss, forward(parts_.forward, batch), batch);
    // A loss that depends on no parameter has nothing to send back; the step will say that it had no gradient.
    if (loss.requires_grad()) parts_.scaler->scale(share == 1 ? loss : loss.mul(share)).backward();
    mean += loss.item<double>() * share;
    sum.after_backward();
  }
  sum.finish();
  return {mean, samples};
}

std::vector<std::string> TrainStep::react(const plan::Observations& observations) {
  const PrecisionPlan& current = parts_.runtime->plan();
  plan::FallbackDecision decision = plan::react(current, fallback, observations, parts_.fallback);
  fallback = std::move(decision.state);
  if (!(decision.plan == current)) parts_.runtime->apply(std::move(decision.plan));
  return std::move(decision.reasons);
}

}  // namespace hpqf::train
