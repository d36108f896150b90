#include "hpqf/plan/allocate/improve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"

namespace hpqf::plan {

std::vector<int64_t> least_costs(const Problem& problem) {
  std::vector<int64_t> least;
  for (size_t b = 0; b < problem.limits.size(); ++b) {
    std::vector<double> only(problem.limits.size(), 0.0);
    only[b] = 1;
    least.push_back(evaluate(problem, knapsack::minimise_forest(problem, 0, only).picks).costs[b]);
  }
  return least;
}

namespace knapsack {
namespace {

constexpr int kRounds = 200;  // of weights that search for picks within several budgets
constexpr double kWeightStep = 0.2;

bool usable(const Choice& choice) { return std::isfinite(choice.loss); }

// How far over its budgets, in shares of them.
double excess(const Problem& problem, const Solution& s) {
  double sum = 0;
  for (size_t b = 0; b < problem.limits.size(); ++b)
    if (s.costs[b] > problem.limits[b])
      sum += static_cast<double>(s.costs[b] - problem.limits[b]) /
             static_cast<double>(std::max<int64_t>(problem.limits[b], 1));
  return sum;
}

[[noreturn]] void refuse(const Problem& problem) {
  const std::vector<int64_t> costs = least_costs(problem);
  std::vector<std::string> least;
  for (size_t b = 0; b < problem.limits.size(); ++b)
    if (problem.limits[b] != kNoLimit)
      least.push_back(fmt::format("{} for a budget of {}", costs[b], problem.limits[b]));
  throw Error("an allocation within budgets that no choice of formats fits",
              fmt::format("the smallest possible is {} (units of the cost{})", fmt::join(least, ", "),
                          least.size() > 1 ? "; each alone, the others left out" : ""),
              "raise the budget, unlock layers, or add lower formats to the menu");
}

}  // namespace

Solution cheapest(const Problem& problem) {
  const size_t budgets = problem.limits.size();
  std::vector<double> weights(budgets, 0.0);
  for (size_t b = 0; b < budgets; ++b)
    if (problem.limits[b] != kNoLimit) weights[b] = 1.0 / static_cast<double>(std::max<int64_t>(problem.limits[b], 1));
  Solution best = evaluate(problem, minimise_forest(problem, 0, weights).picks);
  // Budgets that are exceeded weigh more in the next round (multiplicative weights).
  Solution now = best;
  for (int round = 0; round < kRounds && excess(problem, best) > 0 && (budgets > 1 || !problem.edges.empty());
       ++round) {
    for (size_t b = 0; b < budgets; ++b)
      if (now.costs[b] > problem.limits[b]) weights[b] *= 1 + kWeightStep;
    now = evaluate(problem, minimise_forest(problem, 0, weights).picks);
    if (excess(problem, now) < excess(problem, best)) best = now;
  }
  for (bool better = true; better && excess(problem, best) > 0;) {
    better = false;
    for (size_t g = 0; g < problem.groups.size(); ++g)
      for (size_t i = 0; i < problem.groups[g].size(); ++i) {
        if (!usable(problem.groups[g][i])) continue;
        std::vector<int> picks = best.picks;
        picks[g] = static_cast<int>(i);
        Solution changed = evaluate(problem, std::move(picks));
        if (!(excess(problem, changed) < excess(problem, best))) continue;
        best = std::move(changed);
        better = true;
      }
  }
  if (!fits(problem, best)) refuse(problem);
  return best;
}

void improve(const Problem& problem, Solution& solution) {
  for (;;) {
    double best = 0;
    size_t group = 0;
    int choice = -1;
    for (size_t g = 0; g < problem.groups.size(); ++g)
      for (size_t i = 0; i < problem.groups[g].size(); ++i) {
        const Choice& now = problem.groups[g][static_cast<size_t>(solution.picks[g])];
        const Choice& then = problem.groups[g][i];
        const double saved = now.loss - then.loss;
        if (!(saved > 0)) continue;
        double share = 1e-12;  // a step that costs nothing comes first
        bool fitting = true;
        for (size_t b = 0; b < problem.limits.size() && fitting; ++b) {
          const int64_t extra = then.cost[b] - now.cost[b], spare = problem.limits[b] - solution.costs[b];
          fitting = extra <= spare || !problem.edges.empty();  // with edges the whole sum decides, below
          if (extra > 0 && problem.limits[b] != kNoLimit)
            share += static_cast<double>(extra) / static_cast<double>(std::max<int64_t>(spare, 1));
        }
        if (!fitting || saved / share <= best) continue;
        if (!problem.edges.empty()) {
          std::vector<int> picks = solution.picks;
          picks[g] = static_cast<int>(i);
          if (!fits(problem, evaluate(problem, std::move(picks)))) continue;
        }
        best = saved / share;
        group = g;
        choice = static_cast<int>(i);
      }
    if (choice < 0) return;
    std::vector<int> picks = solution.picks;
    picks[group] = choice;
    Solution better = evaluate(problem, std::move(picks));
    if (!(better.loss < solution.loss)) return;  // a saving below the rounding of the sum
    better.bound = solution.bound;
    better.method = std::move(solution.method);
    solution = std::move(better);
  }
}

}  // namespace knapsack
}  // namespace hpqf::plan
