#include "hpqf/observe/monitor/monitor.h"

#include <fmt/format.h>

#include <cmath>

#include "hpqf/base/clock.h"
#include "hpqf/base/error.h"
#include "hpqf/base/file.h"
#include "hpqf/observe/monitor/bounded_lines.h"
#include "hpqf/observe/monitor/host_probe.h"
#include "hpqf/observe/monitor/reference_run.h"

namespace hpqf::observe {
namespace {

// A mean that forgets: of the last ten rows, roughly. The same for both runs, so that their noise is smoothed alike.
struct Smoothed {
  double sum = 0, weight = 0;
  void add(double value) {
    sum = 0.9 * sum + value;
    weight = 0.9 * weight + 1;
  }
  double value() const { return sum / weight; }
};

}  // namespace

struct Monitor::Impl {
  explicit Impl(const MonitorOptions& o) : probe(o.root) {
    if (!o.path.empty()) lines.emplace(o.path, o.max_bytes, "\"alerts\":");
    if (!o.reference.empty()) reference = ReferenceRun::parse(base::read_file(o.reference), o.reference);
    notes = probe.missing();
    notes.push_back(fmt::format("cpu/utilisation(%) is of {}", probe.limits().cpus_source));
    if (probe.limits().memory_bytes)
      notes.push_back(fmt::format("memory/rss(%) is of the {}", probe.limits().memory_source));
  }

  void note(std::string text) {
    if (!text.empty() && notes.size() < 100) notes.push_back(std::move(text));
  }

  HostProbe probe;
  HostReading first_reading, last_reading;
  std::optional<BoundedLines> lines;
  ReferenceRun reference;
  Smoothed loss, reference_loss;
  std::vector<std::string> notes;

  bool begun = false;
  int64_t row_began = 0;
  double last_wall = 0;
  Interval interval;
  Totals totals;
  double loss_sum = 0, loss_max = 0, reference_sum = 0;
  int64_t losses = 0, references = 0;
  std::optional<double> accuracy_decay;
  AuditReport last_audit;
  std::vector<GradientObservation> gradients;
  int64_t explosions = 0, vanishings = 0;
  AlertState alerts;

  void take(const StepFacts& facts);
  MonitorRow row(const StepFacts& facts, const AuditReport* audit, const MonitorOptions& options);
};

Monitor::Monitor(MonitorOptions options) : options_(std::move(options)) {
  if (options_.every < 1) throw Error(fmt::format("a row every {} steps", options_.every), "1 or more", "e.g. 10");
  check(options_.rules);
  check(options_.cost);
  if (!options_.wall_clock) options_.wall_clock = &base::unix_seconds;
  if (!options_.steady_clock) options_.steady_clock = &base::steady_ns;
  impl_ = std::make_unique<Impl>(options_);
}
Monitor::~Monitor() = default;

void Monitor::resume_after(int64_t step) {
  if (impl_->lines) impl_->lines->resume_after(step);
}

void Monitor::Impl::take(const StepFacts& facts) {
  ++interval.steps;
  interval.skipped += !facts.applied;
  interval.samples += facts.samples;
  interval.step_seconds += facts.seconds;
  // A skipped step's loss may be NaN, and the loss scale has answered it already.
  if (facts.applied || std::isfinite(facts.loss)) {
    loss_max = losses == 0 ? facts.loss : std::max(loss_max, facts.loss);
    loss_sum += facts.loss;
    ++losses;
    if (const auto other = reference.loss(facts.step); other && std::isfinite(facts.loss)) {
      reference_sum += *other;
      ++references;
    }
  }
  const auto other = reference.accuracy(facts.step);
  if (facts.accuracy && other) accuracy_decay = *other - *facts.accuracy;
}

MonitorRow Monitor::Impl::row(const StepFacts& facts, const AuditReport* audit, const MonitorOptions& options) {
  MonitorRow row;
  row.step = facts.step;
  row.epoch = facts.epoch;
  row.time = options.wall_clock();
  if (row.time < last_wall)
    note(fmt::format("the wall clock went back by {:.1f} s; durations come from another clock", last_wall - row.time));
  last_wall = row.time;

  const int64_t now = options.steady_clock();
  interval.seconds = static_cast<double>(now - row_began) * 1e-9;
  if (interval.seconds < interval.step_seconds) interval.seconds = interval.step_seconds;
  row_began = now;
  totals.seconds += interval.seconds;
  totals.samples += interval.samples;

  const double mean_loss = losses > 0 ? loss_sum / static_cast<double>(losses) : std::nan("");
  row.add("loss_metrics/global_avg_loss", mean_loss);
  if (losses > 0) row.add("loss_metrics/global_max_loss", loss_max);
  if (references > 0 && references == losses) {
    loss.add(mean_loss);
    reference_loss.add(reference_sum / static_cast<double>(references));
    row.add("loss_metrics/reference_loss", reference_sum / static_cast<double>(references));
    if (const double base = std::fabs(reference_loss.value()); base > 0)
      row.add("loss_metrics/decay", (loss.value() - reference_loss.value()) / base,
              "relative, smoothed over about ten rows");
  } else if (!reference.empty()) {
    row.unknown.push_back("loss_metrics/decay");
  }
  if (accuracy_decay) row.add("accuracy/decay", *accuracy_decay);
  if (facts.grad_norm) row.add("grad_norm", *facts.grad_norm);
  const auto steps = static_cast<double>(interval.steps);
  row.add("time_metrics/end_to_end(s)", interval.seconds / steps);
  row.add("time_metrics/data_loading(s)", (interval.seconds - interval.step_seconds) / steps);
  if (interval.seconds > 0) {
    row.add("time_metrics/data_loading(%)", 100 * (1 - interval.step_seconds / interval.seconds));
    row.add("throughput(samples/s)", static_cast<double>(interval.samples) / interval.seconds);
  }
  row.add("precision/loss_scale", facts.loss_scale);
  row.add("precision/skipped_share", static_cast<double>(interval.skipped) / steps);

  const HostReading reading = probe.read();
  add_host(row, first_reading, last_reading, reading, probe.limits(), options.cost, interval, totals);
  last_reading = reading;
  if (audit) {
    add_compute(row, last_audit, *audit, options.rates, interval);
    last_audit = *audit;
    last_audit.uncounted.clear();
  }
  add_cost(row, options.cost, totals);
  add_numerics(row, gradients);
  if (!gradients.empty()) {
    row.add("gradients/explosions", static_cast<double>(explosions));
    row.add("gradients/vanishings", static_cast<double>(vanishings));
  }
  row.notes = std::move(notes);
  notes.clear();

  interval = {};
  loss_sum = loss_max = reference_sum = 0;
  losses = references = 0;
  explosions = vanishings = 0;
  gradients.clear();
  accuracy_decay.reset();
  return row;
}

MonitorVerdict Monitor::observe(const StepFacts& facts, const AuditReport* audit,
                                std::span<const GradientObservation> gradients, std::span<const Finding> findings) {
  MonitorVerdict verdict;
  try {
    if (!impl_->begun) {
      // The first step is over: its time is taken from what it says, and data loading before it stays unseen.
      impl_->begun = true;
      impl_->row_began = options_.steady_clock() - static_cast<int64_t>(facts.seconds * 1e9);
      impl_->first_reading = impl_->last_reading = impl_->probe.read();
      impl_->last_wall = options_.wall_clock();
    }
    impl_->take(facts);
    if (!gradients.empty()) impl_->gradients.assign(gradients.begin(), gradients.end());
    for (const Finding& finding : findings) {
      impl_->explosions += finding.trouble == Trouble::explosion;
      impl_->vanishings += finding.trouble == Trouble::vanishing;
      impl_->note(finding.text);
    }
    if (!due(facts.step)) return verdict;
    MonitorRow row = impl_->row(facts, audit, options_);
    AlertDecision decision = evaluate(options_.rules, std::move(impl_->alerts), row);
    impl_->alerts = std::move(decision.state);
    for (const Alert& alert : decision.alerts) {
      row.alerts.push_back(alert.text);
      verdict.stop = verdict.stop || alert.action == AlertAction::stop;
    }
    verdict.alerts = std::move(decision.alerts);
    if (impl_->lines) {
      const std::string failed = impl_->lines->append(row.to_json_line());
      if (!failed.empty()) row.notes.push_back("monitor.jsonl cannot be written, training goes on: " + failed);
    }
    verdict.row = std::move(row);
  } catch (const std::exception& e) {
    impl_->note(std::string("monitoring failed, training goes on: ") + e.what());
  }
  return verdict;
}

}  // namespace hpqf::observe
