// Diagnostics from the Hessian: top eigenvalues by power iteration with deflation, traces by Hutchinson's estimator.
// Figures for readers and for comparison with other tools; decisions use the Fisher score, which ranks layers better at
// a tenth of the cost and sees inputs too.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/engine/sensitivity/curvature.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine::sensitivity {

struct HessianOptions {
  int64_t eigenvalues = 2;    // of the whole model; layers get their largest
  int64_t iterations = 50;    // at most, for each eigenvalue
  double tolerance = 1e-3;    // relative change of an eigenvalue between iterations at which it is taken
  int64_t probes = 100;       // at most
  double trace_error = 0.05;  // stop once the standard error of the whole trace is this share of it
  uint64_t seed = 0;
};

struct HessianResult {              // of the whole model
  std::vector<double> eigenvalues;  // by magnitude, largest first
  double trace = 0, trace_stderr = 0;
  int64_t probes = 0;           // random vectors
  bool by_differences = false;  // of gradients: an op has no second derivative
};

// Magnitude decides; values are signed. Error where the curvature throws.
HPQF_API std::vector<double> top_eigenvalues(Curvature& curvature, const std::vector<size_t>& only, int64_t count,
                                             const HessianOptions& options);

struct Trace {
  double mean = 0, standard_error = 0;
};
struct Traces {
  std::vector<Trace> blocks;  // as many as were asked for
  Trace whole;
  int64_t probes = 0;
};
// One product with a random sign for each parameter serves all blocks at once: z_b (H z)_b has the block's trace as its
// mean. Stops when the whole trace is known to options.trace_error (and at least 10 probes were drawn).
HPQF_API Traces traces(Curvature& curvature, const std::vector<std::vector<size_t>>& blocks,
                       const HessianOptions& options);

// Fills the Hessian of each layer that has a block, and Omega = max(trace, 0) / weights x squared error (HAWQ-V2) of
// its weight scores. blocks[i]: the parameters of sensitivity.layers[i] that are weights; may be empty.
HPQF_API HessianResult add_hessian(plan::Sensitivity& sensitivity, Curvature& curvature,
                                   const std::vector<std::vector<size_t>>& blocks, const HessianOptions& options);

}  // namespace hpqf::engine::sensitivity
