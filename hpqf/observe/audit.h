// The audit: what really ran, per layer, op and pass, by FLOPs and by time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/event.h"
#include "hpqf/plan/observation.h"

namespace hpqf::observe {

struct AuditRow {
  std::string layer, op;
  Pass pass = Pass::forward;
  std::string requested_a, requested_b, effective_a, effective_b;   // block formats as text
  std::string implementation, reason;
  int64_t calls = 0;
  double flops = 0, bytes = 0, seconds = 0;
};

// An op that ran but is not counted by the engine (add, relu, ...), from sampled steps.
struct UncountedOp {
  std::string op;
  double share_of_time = 0;   // of the sampled steps' wall time
  int64_t calls = 0;
};

struct AuditReport {
  std::vector<AuditRow> rows;
  std::vector<UncountedOp> uncounted;
  double total_seconds = 0;        // wall time of the steps the audit covers, 0 if nobody told
  int64_t steps = 0;
  // Share of GEMM FLOPs (and of counted time) whose low operand format is `format`, e.g. {"bf16", 0.93, 0.88, emulated = true}.
  struct Share { std::string format; bool emulated = false; double flops = 0, seconds = 0; };
  std::vector<Share> shares() const;
  std::string to_json(int indent = 1) const;
  static AuditReport from_json(std::string_view text, std::string_view where = "audit");   // Error with the place
  std::string table(int max_rows = 0) const;   // for people; rows grouped by layer in definition order, shares at the end
};

// A sink that aggregates. Cost per event: tens of nanoseconds (no allocation once a key was seen).
class HPQF_API Audit : public EventSink {
 public:
  Audit();
  ~Audit() override;
  void on_op(const OpEvent& event) override;
  void on_cast(const CastEvent& event) override;
  void add_step(double seconds);                     // wall time of one step
  void add_uncounted(std::vector<UncountedOp> ops);  // merges by name
  AuditReport report() const;
  plan::Observations take_observations(int64_t step);   // the casts since the last call, in order
  void clear();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::observe
