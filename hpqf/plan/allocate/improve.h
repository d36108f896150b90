// Steps that several solvers share: a first solution within the budgets, and changes of single picks.
#pragma once
#include <optional>
#include <vector>

#include "hpqf/plan/allocate/knapsack.h"

namespace hpqf::plan::knapsack {

// Cheap picks within every budget. Error when one budget alone is below the least possible, saying that, or when no
// picks within all of them were found.
Solution cheapest(const Problem& problem);

// Changes one pick at a time while that lowers the loss and fits: the pick with the most loss saved for the share of
// the spare budgets that it takes.
void improve(const Problem& problem, Solution& solution);

// Minimises loss_weight * loss + sum of multipliers[b] * cost[b] over the picks, with the edges of a spanning forest;
// edges that close cycles are left out, so the minimum is a lower bound of the whole (costs are not negative).
struct Relaxed {
  std::vector<int> picks;
  double value = 0;
};
Relaxed minimise_forest(const Problem& problem, double loss_weight, const std::vector<double>& multipliers);

// Groups in an order in which every edge joins neighbours; none when the edges are not a set of chains.
std::optional<std::vector<size_t>> chain_order(const Problem& problem);
// Dynamic programming over (choice, cost) along chains: one budget, edges within `order`.
Solution solve_chain(const Problem& problem, const std::vector<size_t>& order, const KnapsackOptions& options);

// Held-Karp multipliers on every budget but the first (all of them with edges).
Solution solve_lagrange(const Problem& problem, const KnapsackOptions& options);
// One budget, no edges.
Solution solve_table(const Problem& problem, const KnapsackOptions& options);

}  // namespace hpqf::plan::knapsack
