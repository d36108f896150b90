// Several budgets, or edges that are no chains: Lagrange multipliers, with the duality gap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/plan/allocate/improve.h"
#include "hpqf/plan/allocate/table.h"

namespace hpqf::plan::knapsack {
namespace {

// The minimum for given multipliers, and a lower bound of it.
struct Inner {
  std::vector<int> picks;
  double value;
};

// Without edges the first budget stays a constraint: the table solves it.
Inner minimise(const Problem& problem, const std::vector<double>& multipliers, const KnapsackOptions& options) {
  if (!problem.edges.empty()) {
    Relaxed r = minimise_forest(problem, 1, multipliers);
    return {std::move(r.picks), r.value};
  }
  Problem priced{problem.groups, {problem.limits[0]}, {}};
  for (Group& group : priced.groups)
    for (Choice& choice : group) {
      for (size_t b = 1; b < problem.limits.size(); ++b)
        choice.loss += multipliers[b] * static_cast<double>(choice.cost[b]);
      choice.cost.resize(1);
    }
  const Solution s = solve_table(priced, options);
  return {s.picks, s.bound};
}

}  // namespace

// Held and Karp's subgradient steps with Polyak's length: towards the best known solution, shorter while the bound
// stands still.
Solution solve_lagrange(const Problem& problem, const KnapsackOptions& options) {
  Solution best = solve_greedy(problem);
  const size_t budgets = problem.limits.size(), first = problem.edges.empty() ? 1 : 0;
  std::vector<double> multipliers(budgets, 0.0);
  double bound = -std::numeric_limits<double>::infinity(), length = 1;
  int rounds = 0, still = 0;
  for (; rounds < options.max_rounds; ++rounds) {
    Inner inner = minimise(problem, multipliers, options);
    double value = inner.value;
    for (size_t b = first; b < budgets; ++b)
      if (problem.limits[b] != kNoLimit) value -= multipliers[b] * static_cast<double>(problem.limits[b]);
    if (value > bound) {
      bound = value;
      still = 0;
    } else if (++still >= 5) {
      length /= 2;
      still = 0;
    }
    Solution s = evaluate(problem, inner.picks);
    double norm = 0;
    std::vector<double> slope(budgets, 0.0);  // in shares of each budget, so that their units do not matter
    for (size_t b = first; b < budgets; ++b) {
      if (problem.limits[b] == kNoLimit) continue;
      const auto limit = static_cast<double>(std::max<int64_t>(problem.limits[b], 1));
      slope[b] = (static_cast<double>(s.costs[b]) - static_cast<double>(problem.limits[b])) / limit;
      if (slope[b] < 0 && multipliers[b] == 0) slope[b] = 0;
      norm += slope[b] * slope[b];
    }
    if (fits(problem, s)) {
      improve(problem, s);
      if (s.loss < best.loss) best = std::move(s);
    }
    const double gap = best.loss - value;
    if (norm == 0 || best.loss - bound <= 1e-12 * std::max(1.0, std::abs(best.loss))) break;
    for (size_t b = first; b < budgets; ++b) {
      const auto limit = static_cast<double>(std::max<int64_t>(problem.limits[b], 1));
      multipliers[b] = std::max(0.0, multipliers[b] + length * gap / norm * slope[b] / limit);
    }
  }
  best.bound = std::min(bound, best.loss);
  best.exact = best.loss - best.bound <= 1e-12 * std::max(1.0, std::abs(best.loss));
  best.method = fmt::format("Lagrange: {} budgets, {} edges, {} rounds", budgets, problem.edges.size(),
                            std::min(rounds + 1, options.max_rounds));
  return best;
}

}  // namespace hpqf::plan::knapsack
