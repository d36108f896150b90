#include "hpqf/observe/monitor/monitor_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "hpqf/base/error.h"
#include "hpqf/observe/profile/profile_report.h"

namespace hpqf::observe {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kJoulesPerKwh = 3.6e6;

void require(bool good, const char* what, double value, const char* allowed) {
  if (!good) throw Error(fmt::format("{} {}", what, value), allowed, fmt::format("correct {}", what));
}

bool positive(const std::optional<double>& value) { return !value || (std::isfinite(*value) && *value > 0); }

// Linear between the closest ranks, as numpy's default.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

struct Work {
  double flops = 0, bytes = 0;
  std::map<Format, double> by_format;
};

Work work_of(const AuditReport& audit) {
  Work work;
  for (const AuditRow& row : audit.rows) {
    work.flops += row.flops;
    work.bytes += row.bytes;
    if (row.flops > 0) work.by_format[arithmetic(row)] += row.flops;
  }
  return work;
}

}  // namespace

void check(const CostOptions& o) {
  require(positive(o.price_per_hour), "price_per_hour", o.price_per_hour.value_or(0), "a finite price over 0");
  require(positive(o.fp32_ratio), "fp32_ratio", o.fp32_ratio.value_or(0), "a finite ratio over 0");
  require(positive(o.watts), "watts", o.watts.value_or(0), "a finite power over 0");
  require(o.samples_per_epoch >= 0, "samples_per_epoch", static_cast<double>(o.samples_per_epoch), "0 or more");
}

void add_host(MonitorRow& row, const HostReading& begin, const HostReading& before, const HostReading& now,
              const HostLimits& limits, const CostOptions& cost, const Interval& interval, const Totals& totals) {
  const double seconds = static_cast<double>(now.nanoseconds - before.nanoseconds) * 1e-9;
  if (now.cpu_seconds && before.cpu_seconds && seconds > 0) {
    row.add("cpu/utilisation(%)", 100 * (*now.cpu_seconds - *before.cpu_seconds) / seconds / limits.cpus);
  } else {
    row.unknown.push_back("cpu/utilisation(%)");
  }
  if (now.resident_bytes) {
    row.add("memory/rss(GiB)", *now.resident_bytes / kGiB);
    if (limits.memory_bytes) row.add("memory/rss(%)", 100 * *now.resident_bytes / *limits.memory_bytes);
  } else {
    row.unknown.push_back("memory/rss(GiB)");
  }
  const auto samples = static_cast<double>(interval.samples);
  if (now.energy_joules && before.energy_joules && begin.energy_joules) {
    row.add("energy/kwh", (*now.energy_joules - *begin.energy_joules) / kJoulesPerKwh,
            "measured by the RAPL counters of the whole machine");
    if (samples > 0)
      row.add("energy/j_per_sample", (*now.energy_joules - *before.energy_joules) / samples,
              "measured by the RAPL counters of the whole machine");
  } else if (cost.watts) {
    const std::string basis = fmt::format("estimated: {} W at all times ({})", *cost.watts, cost.watts_source);
    row.add("energy/kwh", *cost.watts * totals.seconds / kJoulesPerKwh, basis);
    if (samples > 0) row.add("energy/j_per_sample", *cost.watts * interval.seconds / samples, basis);
  } else {
    row.unknown.push_back("energy/kwh");
  }
}

void add_compute(MonitorRow& row, const AuditReport& before, const AuditReport& now, const RateTable& rates,
                 const Interval& interval) {
  const Work old = work_of(before), all = work_of(now);
  const double flops = all.flops - old.flops;
  if (interval.seconds <= 0 || flops <= 0) return;
  row.add("tflops", flops / interval.seconds * 1e-12);
  row.add("memory/counted_bandwidth(GB/s)", (all.bytes - old.bytes) / interval.seconds * 1e-9);
  double at_peak = 0;
  bool known = true;
  for (const auto& [format, total] : all.by_format) {
    const auto earlier = old.by_format.find(format);
    const double part = total - (earlier == old.by_format.end() ? 0 : earlier->second);
    row.add(fmt::format("precision/share_{}", formats::name(format)), part / flops);
    const PeakRate* peak = rates.find(format);
    known = known && (peak || part == 0);
    if (peak) at_peak += part / peak->per_second;
  }
  if (known) row.add("utilisation(%)", 100 * at_peak / interval.seconds);
  const Format base = rates.find(Format::bf16) ? Format::bf16 : Format::fp32;
  if (const PeakRate* peak = rates.find(base)) {
    row.add("mfu(%)", 100 * flops / peak->per_second / interval.seconds,
            fmt::format("against the {} {} peak: {}", peak->basis, formats::name(base), peak->source));
  } else {
    row.unknown.push_back("mfu(%)");
  }
}

void add_cost(MonitorRow& row, const CostOptions& cost, const Totals& totals) {
  if (!cost.price_per_hour) return;
  const std::string prefix = "cost/" + cost.currency,
                    basis = fmt::format("{} an hour: {}", *cost.price_per_hour, cost.price_source);
  const double total = *cost.price_per_hour * totals.seconds / 3600;
  row.add(prefix + "_total", total, basis);
  if (totals.samples > 0) {
    const double per_sample = total / static_cast<double>(totals.samples);
    row.add(prefix + "_per_1k_samples", 1000 * per_sample, basis);
    if (cost.samples_per_epoch > 0)
      row.add(prefix + "_per_epoch", per_sample * static_cast<double>(cost.samples_per_epoch), basis);
  }
  if (cost.fp32_ratio)
    row.add(prefix + "_saved_vs_fp32", total * (*cost.fp32_ratio - 1),
            fmt::format("modelled: fp32 takes {} times as long ({})", *cost.fp32_ratio, cost.ratio_source));
}

void add_numerics(MonitorRow& row, std::span<const GradientObservation> observations) {
  std::vector<std::pair<double, std::string>> errors;  // dB, layer
  double saturated = 0, underflow = 0, gradients = 0;
  std::optional<double> least, most;
  for (const GradientObservation& o : observations) {
    if (o.subject == Subject::weight) {
      if (o.sqnr_db) errors.emplace_back(-*o.sqnr_db, o.layer);
      if (o.update_ratio) {
        least = std::min(least.value_or(*o.update_ratio), *o.update_ratio);
        most = std::max(most.value_or(*o.update_ratio), *o.update_ratio);
      }
    }
    saturated = std::max(saturated, o.overflow);
    if (o.subject == Subject::gradient) {
      underflow += o.underflow * static_cast<double>(o.elements);
      gradients += static_cast<double>(o.elements);
    }
  }
  if (!errors.empty()) {
    std::ranges::sort(errors);
    std::vector<double> values;
    for (const auto& error : errors) values.push_back(error.first);
    row.add("quant/mse_db_median", quantile(values, 0.5));
    row.add("quant/mse_db_p90", quantile(values, 0.9));
    row.add("quant/mse_db_max", values.back());
    for (size_t i = 0; i < std::min<size_t>(5, errors.size()); ++i) {
      const auto& [error, layer] = errors[errors.size() - 1 - i];
      row.add(fmt::format("quant/mse_db{{{}}}", layer), error);
    }
  }
  if (!observations.empty()) row.add("quant/sat_rate", saturated);
  if (gradients > 0) row.add("quant/underflow_rate", underflow / gradients);
  if (least) row.add("update/ratio_min", *least);
  if (most) row.add("update/ratio_max", *most);
}

}  // namespace hpqf::observe
