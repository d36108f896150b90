// The newest events of a run in a ring of fixed size, and as a trace that chrome://tracing and ui.perfetto.dev open.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"

namespace hpqf::observe {

class HPQF_API Timeline {
 public:
  explicit Timeline(int64_t capacity);  // events; 48 bytes each, taken as they come. 0: records nothing

  // An op that ended at `end` (nanoseconds of one steady clock) on the calling thread. `key` names its AuditRow.
  // A node that computes both backward GEMMs reports them one right after the other, with half of its time each: the
  // first is moved back, so that they lie side by side.
  void add_op(int64_t key, Pass pass, int64_t end, int64_t nanoseconds, double flops);
  void add_step(int64_t number, int64_t begin, int64_t end);

  int64_t seen() const;  // events so far; those beyond the capacity have replaced the oldest ones
  int64_t kept() const;
  void clear();

  // Trace Event Format: complete events in microseconds since `origin`, threads as tracks, steps on track 0. At most
  // `max_bytes`: the oldest events are left out first, and "otherData" says how many events there were, how many are
  // in the file and why.
  std::string to_json(const std::map<int64_t, AuditRow>& rows, int64_t origin, int64_t max_bytes) const;

 private:
  struct Event {
    int64_t key;  // serial of the row; number of the step on track 0
    int64_t begin, nanoseconds;
    double flops;
    int32_t track;
    Pass pass;
  };
  void push(const Event& event);

  mutable std::mutex mutex_;
  int64_t capacity_, seen_ = 0;
  std::vector<Event> ring_;
  std::unordered_map<std::thread::id, int32_t> tracks_;
};

}  // namespace hpqf::observe
