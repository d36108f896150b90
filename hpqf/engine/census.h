// Ops the engine does not count (add, relu, optimizer steps), timed on sampled steps only.
#pragma once
#include <memory>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/audit.h"

namespace hpqf::engine {

// Marks work the engine counts itself, so that a running census leaves it out.
void enter_counted();
void leave_counted();
struct CountedRegion {
  CountedRegion() { enter_counted(); }
  ~CountedRegion() { leave_counted(); }
  CountedRegion(const CountedRegion&) = delete;
  CountedRegion& operator=(const CountedRegion&) = delete;
};

// Made between steps, on the thread that trains. While it lives, every outermost torch op of the process is timed by
// name. Costs about 0.2 us an op: for one step in many. Several may run at once; each counts for itself.
class HPQF_API OpCensus {
 public:
  OpCensus();
  ~OpCensus();
  OpCensus(const OpCensus&) = delete;
  OpCensus& operator=(const OpCensus&) = delete;
  // Ops not counted by the engine, longest first, as shares of the wall time since construction.
  std::vector<observe::UncountedOp> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hpqf::engine
