#include "hpqf/plan/allocate/knapsack.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/improve.h"
#include "hpqf/plan/allocate/sparse.h"
#include "hpqf/plan/allocate/table.h"

namespace hpqf::plan {
namespace knapsack {
namespace {

constexpr int64_t kCellsPerState = 8;  // bytes: a state's node takes 8, a cell of the table 1

}  // namespace

Solution solve_table(const Problem& problem, const KnapsackOptions& options) {
  Solution best = solve_greedy(problem);  // Error when nothing fits
  improve(problem, best);
  const Items items = undominated(problem.groups, 0);
  const Relaxation relaxation = relax_linear(items, problem.limits[0]);
  const SparseResult sparse =
      solve_sparse(items, problem.limits[0], best.loss, relaxation, options.max_cells / kCellsPerState);
  if (sparse.complete) {
    if (sparse.picks) {
      Solution s = evaluate(problem, *sparse.picks);
      if (s.loss < best.loss) best = std::move(s);
    }
    best.bound = best.loss;
    best.exact = true;
    best.method = fmt::format("exact: dynamic programming over {} states", sparse.states);
    return best;
  }
  const Table table(items, problem.limits[0], options.max_cells);
  const int64_t cell = table.cell_of(problem.limits[0]);
  // Costs rounded down may overrun by a unit for each group: go down until the real costs fit.
  const int64_t tried = table.exact() ? 1 : static_cast<int64_t>(items.size()) + 1;
  double last = -1;
  for (int64_t k = 0; k < tried && cell - k >= 0; ++k) {
    if (k > 0 && table.loss(cell - k) == last) continue;  // the same picks
    last = table.loss(cell - k);
    if (k > 0 && last >= best.loss) break;  // further down only gets worse
    Solution s = evaluate(problem, table.picks(cell - k));
    if (!fits(problem, s)) continue;
    if (!table.exact()) improve(problem, s);
    if (s.loss < best.loss) best = std::move(s);
  }
  best.bound = std::min(best.loss, std::max(table.loss(cell), relaxation.bound));
  best.exact = table.exact();
  best.method = fmt::format("{}: dynamic programming, {} cells of {} units", table.exact() ? "exact" : "bucketed",
                            cell + 1, table.unit());
  return best;
}

}  // namespace knapsack

Solution solve(const Problem& problem, const KnapsackOptions& options) {
  check(problem);
  if (problem.limits.size() == 1 && problem.edges.empty()) return knapsack::solve_table(problem, options);
  if (problem.limits.size() == 1)
    if (const auto order = knapsack::chain_order(problem)) return knapsack::solve_chain(problem, *order, options);
  return knapsack::solve_lagrange(problem, options);
}

Front pareto_front(const Problem& problem, int most, const KnapsackOptions& options) {
  check(problem);
  if (most < 2) throw Error(fmt::format("a front of {} points", most), "2 or more", "ask for more points");
  const Problem one{problem.groups, problem.limits, {}};
  const knapsack::Items items = knapsack::undominated(problem.groups, 0);
  const knapsack::Table table(items, kNoLimit, options.max_cells);
  std::vector<int64_t> corners;  // cells where the loss falls
  for (int64_t j = 0; j < table.cells(); ++j)
    if (j == 0 || table.loss(j) < table.loss(j - 1)) corners.push_back(j);
  Front front{{}, static_cast<int64_t>(corners.size()), true};
  std::set<int64_t> kept;
  for (int k = 0; k < most; ++k) {
    const int64_t wanted = (table.cells() - 1) * k / (most - 1);
    kept.insert(*(std::upper_bound(corners.begin(), corners.end(), wanted) - 1));
  }
  for (int64_t cell : kept) {
    Solution s;
    if (table.exact()) {
      s = evaluate(one, table.picks(cell));
    } else {  // buckets only say where to look
      s = knapsack::solve_table({problem.groups, {table.budget_of(cell)}, {}}, options);
      front.exact &= s.exact;
    }
    if (front.points.empty() || (s.costs[0] > front.points.back().cost && s.loss < front.points.back().loss))
      front.points.push_back({s.costs[0], s.loss, std::move(s.picks)});
  }
  return front;
}

}  // namespace hpqf::plan
