// The three-tier monitor of a training: what the machine does, what it costs, and what the numbers look like; rows in
// monitor.jsonl, and alerts.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"
#include "hpqf/observe/monitor/alert_rules.h"
#include "hpqf/observe/monitor/gradient_detector.h"
#include "hpqf/observe/monitor/gradient_observation.h"
#include "hpqf/observe/monitor/monitor_metrics.h"
#include "hpqf/observe/monitor/monitor_row.h"
#include "hpqf/observe/profile/rate_table.h"

namespace hpqf::observe {

struct MonitorOptions {
  int64_t every = 10;                     // steps between rows
  std::string path;                       // of monitor.jsonl; "": nothing is written
  int64_t max_bytes = int64_t{32} << 20;  // of it; then old rows are thinned (bounded_lines.h)
  std::vector<AlertRule> rules = default_alert_rules();
  RateTable rates;  // empty: mfu is unknown
  CostOptions cost;
  std::string reference;                  // metrics.jsonl of another run; "": none
  std::string root = "/";                 // where the system's files are; tests give their own
  std::function<double()> wall_clock;     // seconds since 1970; unset: the system's
  std::function<int64_t()> steady_clock;  // nanoseconds; unset: base::steady_ns
};

// What one step did.
struct StepFacts {
  int64_t step = 0, epoch = 0, samples = 0;
  double loss = 0, seconds = 0;  // of the step, data loading not included
  bool applied = true;
  double loss_scale = 1;
  std::optional<double> grad_norm, accuracy;
};

struct MonitorVerdict {
  std::optional<MonitorRow> row;  // when one was due
  std::vector<Alert> alerts;
  bool stop = false;  // some alert asks for it
};

// Failures of monitoring (a full disk, a counter that vanished) become notes of the next row, each once, and never
// leave observe(). Memory does not grow with the number of steps.
class HPQF_API Monitor {
 public:
  explicit Monitor(MonitorOptions options);  // Error: impossible options, a reference run that cannot be read
  ~Monitor();

  void resume_after(int64_t step);  // rows of later steps are dropped; 0: the file starts anew
  bool due(int64_t step) const { return step % options_.every == 0; }

  // After each step. `audit`, of the whole run, is needed only when due(facts.step). `gradients` and `findings` are
  // those of this step; the newest ones stand in the next row.
  MonitorVerdict observe(const StepFacts& facts, const AuditReport* audit = nullptr,
                         std::span<const GradientObservation> gradients = {}, std::span<const Finding> findings = {});

  const MonitorOptions& options() const { return options_; }

 private:
  struct Impl;
  MonitorOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::observe
