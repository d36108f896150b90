// The multiple-choice knapsack behind allocation: one choice for each group, least loss within every budget. Knows
// nothing of layers and formats. Pure and deterministic.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::plan {

struct Choice {
  double loss = 0;            // infinity: never taken
  std::vector<int64_t> cost;  // one for each budget, whole units >= 0 (bits, nanoseconds, ...)
};
using Group = std::vector<Choice>;  // 1 to 255 choices

// Extra cost when two groups take choices i and j: a conversion between neighbours.
struct Edge {
  size_t from = 0, to = 0, budget = 0;
  std::vector<int64_t> cost;  // choices(from) x choices(to), row-major
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct Problem {
  std::vector<Group> groups;
  std::vector<int64_t> limits;  // one for each budget
  std::vector<Edge> edges;      // at most one between two groups
};

struct KnapsackOptions {
  // Cells of the table: groups x cost units. 12 million are 12 MB and about 50 ms for 8 choices a group. A finer grid
  // than that is coarsened.
  int64_t max_cells = 12'000'000;
  int max_rounds = 60;  // of Lagrange multipliers
};

struct Solution {
  std::vector<int> picks;      // for each group
  double loss = 0;             // their sum, in the order of the groups
  std::vector<int64_t> costs;  // their sums with edges, never above the limits
  double bound = 0;            // no solution within the limits has less loss than this
  bool exact = false;          // loss == bound, up to the rounding of sums
  std::string method;          // "exact: ...", "bucketed: ...", "Lagrange: ...", for readers
  double gap() const { return loss - bound; }
};

// One budget without edges: exact, by dynamic programming over states of real cost that the linear relaxation cannot
// rule out; in the rare case that there are more than max_cells / 8 of them, over whole cost units, the unit being the
// greatest common divisor of the costs. Edges that form chains: exact, over (choice, cost units). Where such a grid
// would exceed max_cells, costs are rounded *down* to coarser buckets, which gives a bound, and solutions are checked
// with their real costs, so that no budget is broken.
// Other edges, or several budgets: Lagrange multipliers (on all budgets but the first; on all of them with edges), with
// the duality gap. Never worse than solve_greedy. Error when no choice fits, saying the least possible.
// Sources: Kellerer, Pferschy, Pisinger, "Knapsack Problems", 2004, chapter 11; Held and Karp 1971 for the multipliers.
HPQF_API Solution solve(const Problem& problem, const KnapsackOptions& options = {});

// The usual heuristic, as a cross-check: from the cheapest choices upwards, always the step with the most loss saved
// for its cost that still fits. `bound` is not computed (-infinity).
HPQF_API Solution solve_greedy(const Problem& problem);

struct FrontPoint {
  int64_t cost = 0;
  double loss = 0;
  std::vector<int> picks;
};
struct Front {
  std::vector<FrontPoint> points;  // cheapest first; cost rises, loss falls
  int64_t found = 0;               // how many there were before thinning; a bucketed table shows fewer than there are
  bool exact = false;
};
// What each further unit of the first budget buys, from the cheapest choices to the best, read from one table; where
// that table is bucketed, the points are solved one by one. The other budgets and edges are ignored. At most `most`
// points, both ends kept, evenly spread in cost.
HPQF_API Front pareto_front(const Problem& problem, int most, const KnapsackOptions& options = {});

// Loss and costs of given picks.
HPQF_API Solution evaluate(const Problem& problem, std::vector<int> picks);
HPQF_API bool fits(const Problem& problem, const Solution& solution);

// The least that each budget alone allows (with edges that close cycles: an upper bound of it).
HPQF_API std::vector<int64_t> least_costs(const Problem& problem);

// Error unless sizes agree, costs are >= 0 and sums stay within int64_t, and each group has a choice of finite loss.
HPQF_API void check(const Problem& problem);

}  // namespace hpqf::plan
