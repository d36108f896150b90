// What a run has cost so far, from its metrics.jsonl: over all its parts, however often it was stopped and resumed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/projection.h"

namespace hpqf::cost {

struct RunLog {
  int64_t lines = 0;
  int64_t steps = 0;  // distinct optimizer steps
  int64_t skipped = 0;
  int64_t epochs = 0;        // begun
  double epoch_samples = 0;  // of the first epoch, once the second has begun; else 0
  double samples = 0;        // of distinct steps
  double step_seconds = 0;   // inside steps
  // From one step's end to the next within a process: data loading and checkpoints are in it, the time between two
  // processes is not. Steps whose line has no such time count with the time inside the step.
  double wall_seconds = 0;
  double repeated_seconds = 0;          // part of it: steps that a resumed run took a second time
  bool torn = false;                    // the last line is cut: a run was killed while writing
  int64_t without_time = 0;             // lines that say nothing about time
  int64_t wrong_time = 0;               // lines with a negative time (a clock was set back); they count as 0
  int64_t without_samples = 0;          // lines that do not say how many samples they took, where `usual` was 0
  std::vector<double> samples_by_step;  // of distinct steps, in the order of the lines
  std::vector<CurvePoint> loss;
};

// `usual` samples are assumed for lines that do not say how many: batch size times accumulation, or 0. Error for a line
// in the middle that is no JSON object with a step.
HPQF_API RunLog read_run_log(std::string_view text, std::string_view where, double usual);

}  // namespace hpqf::cost
