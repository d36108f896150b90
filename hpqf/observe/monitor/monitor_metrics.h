// The numbers of a monitor row, tier by tier: pure functions on values.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/monitor/gradient_observation.h"
#include "hpqf/observe/monitor/host_probe.h"
#include "hpqf/observe/monitor/monitor_row.h"
#include "hpqf/observe/profile/rate_table.h"

namespace hpqf::observe {

// Tier 2 needs what only the user knows.
struct CostOptions {
  std::optional<double> price_per_hour;  // of everything that this process occupies
  std::string currency = "usd";          // part of the metric names: cost/usd_total
  std::string price_source = "given";
  std::optional<double> fp32_ratio;  // time of fp32 over the time of this precision, for the same work
  std::string ratio_source = "given";
  int64_t samples_per_epoch = 0;  // 0: unknown
  std::optional<double> watts;    // for energy where no counter can be read, e.g. the TDP
  std::string watts_source = "given";
};
HPQF_API void check(const CostOptions& options);  // Error naming what is impossible

// What happened between two rows.
struct Interval {
  int64_t steps = 0, skipped = 0, samples = 0;
  double step_seconds = 0;  // inside of steps
  double seconds = 0;       // wall time, data loading included
};

// Time used and samples seen since the monitor began.
struct Totals {
  double seconds = 0;
  int64_t samples = 0;
};

// Tier 1, from two readings: cpu/utilisation(%) of what the process may use, memory/rss(GiB) and (%), energy/kwh and
// energy/j_per_sample. A pair of readings with no time between them gives nothing.
HPQF_API void add_host(MonitorRow& row, const HostReading& begin, const HostReading& before, const HostReading& now,
                       const HostLimits& limits, const CostOptions& cost, const Interval& interval,
                       const Totals& totals);

// Tier 1, from two audits of one run: tflops, mfu(%), memory/counted_bandwidth(GB/s), precision/share_FORMAT. Work that
// the engine counts only.
HPQF_API void add_compute(MonitorRow& row, const AuditReport& before, const AuditReport& now, const RateTable& rates,
                          const Interval& interval);

// Tier 2: cost/usd_total, cost/usd_per_1k_samples, cost/usd_per_epoch, cost/usd_saved_vs_fp32.
HPQF_API void add_cost(MonitorRow& row, const CostOptions& cost, const Totals& totals);

// Tier 3: quant/mse_db_{median,p90,max} over layers (noise to signal of the weights, -30 is better than -20),
// quant/mse_db{LAYER} of the five worst, quant/sat_rate (largest share of overflow), quant/underflow_rate (gradients,
// over all elements), update/ratio_{min,max}.
HPQF_API void add_numerics(MonitorRow& row, std::span<const GradientObservation> observations);

}  // namespace hpqf::observe
