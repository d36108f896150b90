#include "hpqf/observe/export/names.h"

#include <array>

namespace hpqf::observe {
namespace {

constexpr std::array kNames = {
    MetricName{Metric::loss, "loss_metrics/global_avg_loss", "hpqf_loss", "loss", "1",
               "Mean loss over the samples of the step, unscaled (measured)."},
    MetricName{Metric::grad_norm, "grad_norm", "hpqf_grad_norm", "grad_norm", "1",
               "2-norm of the gradients, unscaled, before clipping (measured)."},
    MetricName{Metric::lr, "lr", "hpqf_learning_rate", "lr", "1", "Learning rate of the first parameter group."},
    MetricName{Metric::samples_per_second, "throughput(samples/s)", "hpqf_samples_per_second", "samples_per_second",
               "1/s", "Samples of the step by its wall time, data loading not included (measured)."},
    MetricName{Metric::tokens_per_second, "throughput(tps)", "hpqf_tokens_per_second", nullptr, "1/s",
               "Samples per second times the tokens of a sample (measured)."},
    MetricName{Metric::step_seconds, "time_metrics/end_to_end(s)", "hpqf_step_seconds", "seconds", "s",
               "Wall time of the step, data loading not included (measured)."},
    MetricName{Metric::loss_scale, "precision/loss_scale", "hpqf_loss_scale", "loss_scale", "1",
               "Loss scale the step ran with."},
    MetricName{Metric::skipped, "precision/skipped_step", "hpqf_skipped_steps_total", "skipped", "1",
               "1 when the step was left out because a gradient was not finite; the counter is their number."},
    MetricName{Metric::epoch, "epoch", "hpqf_epoch", "epoch", "1", "Pass over the training data, from 0."},
    MetricName{Metric::plan_epoch, "precision/plan_epoch", "hpqf_plan_epoch", "plan_epoch", "1",
               "Version of the precision plan the step ran with."},
    MetricName{Metric::validation_loss, "validation_metrics/global_avg_loss", "hpqf_validation_loss", "validation_loss",
               "1", "Mean loss over the validation samples (measured)."},
    MetricName{Metric::validation_accuracy, "validation_metrics/accuracy", "hpqf_validation_accuracy_ratio",
               "validation_accuracy", "1", "Share of validation samples classified rightly (measured)."},
    MetricName{Metric::share_flops, "precision/share", "hpqf_precision_flops_ratio", nullptr, "1",
               "Share of the counted GEMM FLOPs by format and arithmetic, of all steps so far (measured)."},
    MetricName{Metric::share_time, "precision/time_share", "hpqf_precision_time_ratio", nullptr, "1",
               "Share of the counted time by format and arithmetic, of all steps so far (measured)."},
    MetricName{Metric::native_flops, "precision/native_flops", "hpqf_native_flops_ratio", nullptr, "1",
               "Share of the counted GEMM FLOPs whose arithmetic was not emulated (measured)."},
    MetricName{Metric::as_requested_flops, "precision/requested_vs_run", "hpqf_as_requested_flops_ratio", nullptr, "1",
               "Share of the counted GEMM FLOPs that ran in the formats of the plan (measured)."},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (static_cast<size_t>(kNames[i].metric) != i) return false;
  return true;
}
static_assert(in_order());

template <class Counts>
double flops_share(const AuditReport& audit, Counts&& counts) {
  double all = 0, part = 0;
  for (const AuditRow& row : audit.rows) {
    all += row.flops;
    if (counts(row)) part += row.flops;
  }
  return all > 0 ? part / all : 0;
}

}  // namespace

std::span<const MetricName> metric_names() { return kNames; }
const MetricName& name_of(Metric metric) { return kNames[static_cast<size_t>(metric)]; }

std::optional<double> value_of(Metric metric, const StepRecord& step, const RunInfo& run) {
  switch (metric) {
    case Metric::loss:
      return step.loss;
    case Metric::grad_norm:
      return step.grad_norm;
    case Metric::lr:
      return step.lr;
    case Metric::samples_per_second:
      return step.samples_per_second;
    case Metric::tokens_per_second:
      if (run.tokens_per_sample == 0 || !step.samples_per_second) return std::nullopt;
      return *step.samples_per_second * static_cast<double>(run.tokens_per_sample);
    case Metric::step_seconds:
      return step.seconds;
    case Metric::loss_scale:
      return step.loss_scale;
    case Metric::skipped:
      return step.skipped ? 1 : 0;
    case Metric::epoch:
      return static_cast<double>(step.epoch);
    case Metric::plan_epoch:
      return static_cast<double>(step.plan_epoch);
    default:
      return std::nullopt;
  }
}

double native_flops_share(const AuditReport& audit) {
  return flops_share(audit, [](const AuditRow& row) { return !row.implementation.starts_with("emulated"); });
}

double as_requested_flops_share(const AuditReport& audit) {
  return flops_share(audit, [](const AuditRow& row) {
    return row.effective_a == row.requested_a && row.effective_b == row.requested_b;
  });
}

}  // namespace hpqf::observe
