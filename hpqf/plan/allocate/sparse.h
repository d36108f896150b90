// One budget, real costs, no grid: dynamic programming over lists of states, most of which a bound removes.
#pragma once
#include <optional>

#include "hpqf/plan/allocate/table.h"

namespace hpqf::plan::knapsack {

// The linear relaxation (fractions of choices allowed): its multiplier, and the bound it gives.
struct Relaxation {
  double multiplier = 0;  // loss for a unit of cost at the optimum
  double bound = 0;       // no solution has less loss
};
Relaxation relax_linear(const Items& items, int64_t limit);

// The picks of least loss, or none when `known`, the loss of a solution at hand, is already the least. A state is
// dropped when its loss plus what the relaxation says of the rest exceeds `known`, or when another state is no dearer
// and no worse. Exact, unless the lists outgrow `max_states`: then `complete` is false and nothing is claimed.
// Source: the reduction of Dyer, Riha and Walker 1995 and Pisinger 1995 ("A minimal algorithm for the multiple-choice
// knapsack problem"), with the multiplier held fixed.
struct SparseResult {
  std::optional<std::vector<int>> picks;
  bool complete = false;
  int64_t states = 0;
};
SparseResult solve_sparse(const Items& items, int64_t limit, double known, const Relaxation& relaxation,
                          int64_t max_states);

}  // namespace hpqf::plan::knapsack
