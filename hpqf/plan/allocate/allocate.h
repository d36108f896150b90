// Allocation: from the sensitivity of a model and a budget to a plan. Pure; docs/allocation.md has the formulas.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/plan/allocate/admission.h"
#include "hpqf/plan/allocate/knapsack.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::plan {

// What a plan may spend. Unset: no limit. One at least.
struct Budget {
  std::optional<double> bits;     // mean bits of a weight's code, scales not counted: int4 everywhere is 4
  std::optional<double> bytes;    // of all weights as stored, with the scales of blocks
  std::optional<double> seconds;  // of all layers, from measured times, with conversions
  std::optional<double> bops;     // bit operations for one sample: multiply-adds x bits of weight x bits of input
  std::optional<double> loss;     // nats of predicted loss; alone: the least `minimise` that keeps to it
  bool operator==(const Budget&) const = default;
};

// "bits=4.0", "bytes=60k" (k, M, G: powers of 1000), "seconds=0.01", "bops=2.5G", "loss=0.02"; several with commas.
HPQF_API Budget parse_budget(std::string_view text);
HPQF_API std::string to_string(const Budget& budget);

// The measured time of one layer with given formats, all its passes together.
struct LayerTime {
  std::string layer;
  BlockFormat weight, input, dgrad, wgrad;
  double seconds = 0;
};
// Turning what a producer works in into what its consumer wants; both formats are those of `input`.
struct Conversion {
  BlockFormat from, to;
  double seconds_per_element = 0;
};
// Schema "hpqf.times" version 1: {"layers":[{"layer","weight","input",["dgrad","wgrad"],"seconds"}],
// "conversions":[{"from","to","seconds_per_element"}]}
struct Times {
  std::vector<LayerTime> layers;
  std::vector<Conversion> conversions;  // pairs not listed cost nothing
};
HPQF_API Times times_from_json(std::string_view text, std::string_view where = "times");

struct Lock {
  std::string layers;  // a pattern as in a plan's rules
  LayerPrecision precision;
  std::string reason;
};

struct AllocationOptions {
  double standard_errors = 1;  // added to each score: a solver picks those that are too low by chance
  // Formats to choose from; empty: those with scores, for the operands that a budget limits. An operand that no budget
  // limits and that has no menu stays at fp32.
  std::vector<BlockFormat> weight, input;
  std::vector<Lock> locks;                      // layers that are not asked, with the reason
  std::optional<double> forbid_above;           // no choice whose score exceeds this (nats); what is left over is fp32
  std::optional<AdmissionThresholds> training;  // only formats that admit() allows
  Times times;                                  // for a budget of seconds
  std::string minimise = "bytes";               // bits, bytes, seconds or bops: with a budget of loss alone
  int front_points = 0;                         // of the Pareto front over the first limited cost; 0: none
  KnapsackOptions solver;
};

struct Amount {
  std::string kind;             // bits, bytes, seconds, bops
  double value = 0, limit = 0;  // infinity: no limit
};
struct Candidate {
  std::string name;  // "exact", "greedy", "uniform int4"
  PrecisionPlan plan;
  double loss = 0;  // predicted, nats
  std::vector<Amount> amounts;
};
struct AllocationPoint {
  double cost = 0, loss = 0;
  PrecisionPlan plan;
  PlanDiff changes;  // from the point before
};

struct Allocation {
  PrecisionPlan plan;  // reasons for each layer
  double loss = 0;     // predicted change of the loss, nats, standard errors included
  double bound = 0;    // no choice within the budget has less
  bool exact = false;
  std::string method;
  std::vector<Amount> amounts;
  // Within the budget, to be measured before one is taken: the solver's, the greedy one's and the best uniform plan.
  std::vector<Candidate> candidates;
  std::string front_kind;  // cost of the front
  std::vector<AllocationPoint> front;
  int64_t front_found = 0;
  bool front_exact = false;
};

// Error: a budget below the least possible (saying it), a kind of cost that the records lack, a lock that names no
// layer.
HPQF_API Allocation allocate(const Sensitivity& sensitivity, const Budget& budget,
                             const AllocationOptions& options = {});
HPQF_API std::string to_json(const Allocation& allocation);  // schema "hpqf.allocation" version 1
HPQF_API void check(const Budget& budget);

// The score of each format as the solver sees it: standard errors added, and never lower than that of a format with
// more bits (a running maximum from high to low).
HPQF_API double solver_score(const LayerSensitivity& layer, Operand operand, const BlockFormat& format,
                             double standard_errors);

// Which of the candidates to take, from what was measured on fresh data (e.g. the KL divergence from fp32, nats, lower
// is better): the least; non-finite ones are out. With a uniform plan among them the result is never worse than that by
// construction. Error when sizes differ or nothing is finite.
struct FinalChoice {
  size_t index = 0;
  std::string reason;
};
HPQF_API FinalChoice choose_final(const std::vector<Candidate>& candidates, const std::vector<double>& measured);

}  // namespace hpqf::plan
