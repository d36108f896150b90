// The audit: what really ran, per layer, op and pass, by FLOPs and by time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/event.h"
#include "hpqf/plan/observation.h"

namespace hpqf::observe {

struct AuditRow {
  std::string layer, op;
  Pass pass = Pass::forward;
  std::string requested_a, requested_b, effective_a, effective_b;  // block formats as text
  std::string implementation, reason;
  int64_t calls = 0;
  double flops = 0, bytes = 0, seconds = 0;
};

// An op that ran but is not counted by the engine (add, relu, ...), from sampled steps.
struct UncountedOp {
  std::string op;
  double share_of_time = 0;  // of the sampled steps' wall time, 0 to 1
  int64_t calls = 0;
};

struct HPQF_API AuditReport {
  std::vector<AuditRow> rows;
  std::vector<UncountedOp> uncounted;
  double total_seconds = 0;  // wall time of the steps the audit covers, 0 if nobody told
  int64_t steps = 0;
  int64_t sampled_steps = 0;  // of them those whose uncounted ops were listed
  // Share of GEMM FLOPs (and of counted time) whose low operand format is `format`, e.g. {"bf16", 0.93, 0.88, emulated
  // = true}.
  struct Share {
    std::string format;
    bool emulated = false;
    double flops = 0, seconds = 0;
  };
  std::vector<Share> shares() const;  // most FLOPs first
  double counted_flops() const;
  double counted_seconds() const;
  double base_seconds() const;  // what times are shares of in texts: total_seconds, or counted_seconds without it
  // Schema "hpqf.audit" version 1.
  std::string to_json(int indent = 1) const;
  static AuditReport from_json(std::string_view text, std::string_view where = "audit");  // Error with the place
  // For people: rows grouped by layer in the order in which layers first ran, totals() at the end. With `max_rows` > 0
  // the rows that took longest, and a line for what the others sum to.
  std::string table(int max_rows = 0) const;
  std::string totals() const;  // steps, wall time and how much of it is counted, shares, uncounted ops
};

// One report over the steps of both. Rows of the same content add up; `earlier` gives the order.
HPQF_API AuditReport merged(AuditReport earlier, const AuditReport& later);

// A sink that aggregates, by the content of the strings: they may die with the runtime that emitted the event. Cost per
// event: about 75 ns with 90 bytes of strings (measured, one AMD EPYC core, AVX2); no allocation once a key was seen.
class HPQF_API Audit : public EventSink {
 public:
  Audit();
  ~Audit() override;
  void on_op(const OpEvent& event) override;
  void on_cast(const CastEvent& event) override;
  void add_step(double seconds);  // wall time of one step
  // One sample. Merges by name: calls add up, shares become the mean over all samples (0 where an op is missing).
  void add_uncounted(std::vector<UncountedOp> ops);
  AuditReport report() const;  // with what restore() was given
  // Forgets all and goes on from `earlier`, the report of a run that is resumed.
  void restore(AuditReport earlier);
  // The casts since the last call, in order of their first event. Events of one layer, role and format add up, but
  // those whose source was finite stay apart from those whose source was not: only the former can be a cause.
  plan::Observations take_observations(int64_t step);
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::observe
