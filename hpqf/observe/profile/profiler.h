// A sink that profiles a stretch of a run: sums per layer, op, pass and format, and a timeline of bounded size.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/event.h"
#include "hpqf/observe/profile/profile_report.h"
#include "hpqf/observe/profile/rate_table.h"

namespace hpqf::observe {

inline constexpr int64_t kMaxTraceBytes = int64_t{64} << 20;

struct ProfilerOptions {
  RateTable rates;                 // peaks to compare with; empty: utilisation is shown as unknown
  int64_t trace_events = 250'000;  // the newest ones are kept (12 MB); 0: no timeline
  std::function<int64_t()> clock;  // steady nanoseconds; unset: base::steady_ns
};

// Memory: a row for each distinct layer, op, pass, formats, implementation and reason, and the ring; neither grows with
// the number of steps. Cost per event: that of the audit and about as much again for the timeline. Thread safe. Events
// outside of start() and stop() are not counted.
class HPQF_API Profiler : public EventSink {
 public:
  explicit Profiler(ProfilerOptions options = {});
  ~Profiler() override;

  void start();  // goes on after a stop(); the time between is not counted
  void stop();
  void step();  // an optimizer step ended here
  void clear();

  void on_op(const OpEvent& event) override;
  void on_cast(const CastEvent& event) override;
  // A census of ops the engine does not count, as shares of `seconds`. Several are averaged by their seconds.
  void add_uncounted(const std::vector<UncountedOp>& ops, double seconds);

  void set_rates(RateTable rates);
  ProfileReport report() const;  // also while it runs
  // Error when the file cannot be written; nothing is left of it then.
  void write_trace(const std::string& path, int64_t max_bytes = kMaxTraceBytes) const;
  std::string trace_json(int64_t max_bytes = kMaxTraceBytes) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::observe
