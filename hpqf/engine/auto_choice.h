// What an "auto" plan chooses for the layers that were seen, from measured rates and, where there is one, a measured
// sensitivity.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "hpqf/engine/problem_shape.h"
#include "hpqf/plan/plan.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine {

// A format that can run one layer here, and how fast.
struct TimedFormat {
  BlockFormat format;
  double ratio = 1;    // fp32's time over this, forward and backward
  double seconds = 0;  // of one step of the layer
};

// fp32 first; then what is at least 5 % faster. `tried` tells of every format, in words.
struct Candidates {
  std::vector<TimedFormat> formats;
  std::string tried;
};
Candidates candidates(const ProblemShape& shape);

struct AutoChoice {
  std::string format = "fp32";
  double ratio = 1;
  std::string reason;
};

// By speed alone. The first and the last layer keep at least 12 bits, for they see the data and the loss unsmoothed.
AutoChoice fastest(const ProblemShape& shape, bool outermost);

// The least time for which the predicted change of the loss of all layers together stays within `most_loss` nats: an
// exact allocation over the layers, in the order of `seen`. A layer without a score stays at fp32.
struct Allocated {
  std::vector<AutoChoice> choices;
  double loss = 0;  // predicted, nats, one standard error of each score included
};
Allocated allocate_by_loss(const std::vector<std::pair<std::string, const ProblemShape*>>& seen,
                           const plan::Sensitivity& sensitivity, double most_loss);

// Formats that an "auto" plan may choose on this CPU.
std::vector<BlockFormat> auto_formats();
std::string no_instructions(Format format);  // "" when this CPU has instructions for it

}  // namespace hpqf::engine
