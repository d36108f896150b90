// Feeds an exporter from a finished run.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/export/metrics_sink.h"

namespace hpqf::observe {

struct Replayed {
  int64_t steps = 0, evaluations = 0;
  bool audit = false;
  std::vector<std::string> notes;  // what was missing or damaged
};

// Steps and evaluations in the order in which they happened, then the audit. Memory does not grow with the number of
// steps. A step without a time gets the start of the run plus the wall times of the steps so far. Error as in read_run.
HPQF_API Replayed replay(const std::string& folder, MetricsSink& sink);

}  // namespace hpqf::observe
