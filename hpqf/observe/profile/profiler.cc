#include "hpqf/observe/profile/profiler.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "hpqf/base/clock.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/op_totals.h"
#include "hpqf/observe/profile/timeline.h"

namespace hpqf::observe {

struct Profiler::Impl {
  explicit Impl(ProfilerOptions o) : options(std::move(o)), timeline(options.trace_events) {
    if (!options.clock) options.clock = &base::steady_ns;
    origin = options.clock();
  }

  ProfilerOptions options;
  OpTotals ops;
  Timeline timeline;
  std::atomic<bool> running{false};
  std::atomic<int64_t> nonfinite{0}, overflow{0};

  mutable std::mutex mutex;  // of what follows: touched at steps, starts and stops only
  int64_t origin = 0, started = 0, step_began = 0, nanoseconds = 0, steps = 0;
  double census_seconds = 0;
  std::map<std::string, std::pair<double, int64_t>> uncounted;  // seconds, calls
};

Profiler::Profiler(ProfilerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Profiler::~Profiler() = default;

void Profiler::start() {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->running) return;
  impl_->started = impl_->step_began = impl_->options.clock();
  impl_->running = true;
}

void Profiler::stop() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->running) return;
  impl_->running = false;
  impl_->nanoseconds += impl_->options.clock() - impl_->started;
}

void Profiler::step() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->running) return;
  const int64_t now = impl_->options.clock();
  impl_->timeline.add_step(++impl_->steps, impl_->step_began, now);
  impl_->step_began = now;
}

void Profiler::clear() {
  const std::lock_guard lock(impl_->mutex);
  impl_->ops.clear();
  impl_->timeline.clear();
  impl_->nonfinite = impl_->overflow = 0;
  impl_->nanoseconds = impl_->steps = 0;
  impl_->census_seconds = 0;
  impl_->uncounted.clear();
  impl_->origin = impl_->started = impl_->step_began = impl_->options.clock();
}

void Profiler::on_op(const OpEvent& event) {
  if (!impl_->running.load(std::memory_order_relaxed)) return;
  const int64_t key = impl_->ops.add(event);
  if (impl_->options.trace_events > 0)
    impl_->timeline.add_op(key, event.pass, impl_->options.clock(), event.nanoseconds, event.flops);
}

void Profiler::on_cast(const CastEvent& event) {
  if (!impl_->running.load(std::memory_order_relaxed)) return;
  impl_->nonfinite += event.nonfinite_in > 0;
  impl_->overflow += event.overflow > 0;
}

void Profiler::add_uncounted(const std::vector<UncountedOp>& ops, double seconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->census_seconds += seconds;
  for (const UncountedOp& op : ops) {
    auto& [time, calls] = impl_->uncounted[op.op];
    time += op.share_of_time * seconds;
    calls += op.calls;
  }
}

void Profiler::set_rates(RateTable rates) {
  const std::lock_guard lock(impl_->mutex);
  impl_->options.rates = std::move(rates);
}

ProfileReport Profiler::report() const {
  ProfileReport report;
  report.audit.rows = impl_->ops.rows();
  report.nonfinite_casts = impl_->nonfinite;
  report.overflowing_casts = impl_->overflow;
  const std::lock_guard lock(impl_->mutex);
  report.rates = impl_->options.rates;
  const int64_t open = impl_->running ? impl_->options.clock() - impl_->started : 0;
  report.audit.total_seconds = static_cast<double>(impl_->nanoseconds + open) * 1e-9;
  report.audit.steps = impl_->steps;
  for (const auto& [op, sum] : impl_->uncounted)
    report.audit.uncounted.push_back(
        {op, impl_->census_seconds > 0 ? sum.first / impl_->census_seconds : 0, sum.second});
  return report;
}

std::string Profiler::trace_json(int64_t max_bytes) const {
  int64_t origin = 0;
  {
    const std::lock_guard lock(impl_->mutex);
    origin = impl_->origin;
  }
  return impl_->timeline.to_json(impl_->ops.rows_by_serial(), origin, max_bytes);
}

void Profiler::write_trace(const std::string& path, int64_t max_bytes) const {
  base::atomic_write(path, trace_json(max_bytes));
}

}  // namespace hpqf::observe
