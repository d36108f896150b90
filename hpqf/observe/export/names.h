// What each exported number is called, in one table. Names of torchtitan (components/metrics.py) where it has one.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/run/step_record.h"

namespace hpqf::observe {

enum class Metric {
  loss,
  grad_norm,
  lr,
  samples_per_second,
  tokens_per_second,
  step_seconds,
  loss_scale,
  skipped,
  epoch,
  plan_epoch,
  validation_loss,
  validation_accuracy,
  share_flops,  // these four: of the audit
  share_time,
  native_flops,
  as_requested_flops,
};

struct MetricName {
  Metric metric;
  const char* tag;         // TensorBoard, JSONL
  const char* prometheus;  // without labels; base unit in the name
  const char* column;      // CSV; nullptr: not a column
  const char* unit;
  const char* help;  // one sentence, with how the number comes about
};

HPQF_API std::span<const MetricName> metric_names();
HPQF_API const MetricName& name_of(Metric metric);

// The value of a step's metric; empty when the step does not have it, or when it is none of a step.
HPQF_API std::optional<double> value_of(Metric metric, const StepRecord& step, const RunInfo& run);

// Shares of the counted GEMM FLOPs.
HPQF_API double native_flops_share(const AuditReport& audit);        // arithmetic really in the low format (or fp32)
HPQF_API double as_requested_flops_share(const AuditReport& audit);  // both operands in the formats of the plan

}  // namespace hpqf::observe
