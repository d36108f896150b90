// The greedy heuristic, and the sums and checks that every solver shares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/improve.h"
#include "hpqf/plan/allocate/knapsack.h"
#include "hpqf/plan/allocate/table.h"

namespace hpqf::plan {
namespace {

// One step up in one group along the lower convex hull of its choices.
struct Step {
  double rate;  // loss saved for each unit of cost
  int64_t cost;
  size_t group;
  int to;
};

void add_steps(const std::vector<knapsack::Item>& items, size_t group, std::vector<Step>& steps) {
  std::vector<knapsack::Item> hull;
  auto rate = [](const knapsack::Item& a, const knapsack::Item& b) {
    return (a.loss - b.loss) / static_cast<double>(b.cost - a.cost);
  };
  for (const knapsack::Item& item : items) {
    while (hull.size() > 1 && rate(hull.back(), item) >= rate(hull[hull.size() - 2], hull.back())) hull.pop_back();
    hull.push_back(item);
  }
  for (size_t i = 1; i < hull.size(); ++i)
    steps.push_back({rate(hull[i - 1], hull[i]), hull[i].cost - hull[i - 1].cost, group, hull[i].index});
}

Solution greedy_one_budget(const Problem& problem, Solution s) {
  const knapsack::Items items = knapsack::undominated(problem.groups, 0);
  std::vector<Step> steps;
  for (size_t g = 0; g < items.size(); ++g) {
    s.picks[g] = items[g].front().index;
    add_steps(items[g], g, steps);
  }
  int64_t spare = problem.limits[0] - evaluate(problem, s.picks).costs[0];
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.rate > b.rate; });
  std::vector<bool> stopped(items.size());
  for (const Step& step : steps) {
    if (stopped[step.group]) continue;
    if (step.cost > spare) {
      stopped[step.group] = true;
      continue;
    }
    spare -= step.cost;
    s.picks[step.group] = step.to;
  }
  return evaluate(problem, std::move(s.picks));
}

}  // namespace

Solution evaluate(const Problem& problem, std::vector<int> picks) {
  Solution s;
  s.costs.assign(problem.limits.size(), 0);
  for (size_t g = 0; g < picks.size(); ++g) {
    const Choice& choice = problem.groups[g][static_cast<size_t>(picks[g])];
    s.loss += choice.loss;
    for (size_t b = 0; b < s.costs.size(); ++b) s.costs[b] += choice.cost[b];
  }
  for (const Edge& edge : problem.edges)
    s.costs[edge.budget] += edge.cost[static_cast<size_t>(picks[edge.from]) * problem.groups[edge.to].size() +
                                      static_cast<size_t>(picks[edge.to])];
  s.bound = -std::numeric_limits<double>::infinity();
  s.picks = std::move(picks);
  return s;
}

bool fits(const Problem& problem, const Solution& solution) {
  for (size_t b = 0; b < problem.limits.size(); ++b)
    if (solution.costs[b] > problem.limits[b]) return false;
  return true;
}

void check(const Problem& problem) {
  constexpr const char* todo = "build the choices from a checked sensitivity";
  std::vector<double> most(problem.limits.size(), 0);
  if (problem.limits.empty()) throw Error("a problem without a budget", "one or more", "use kNoLimit for no limit");
  for (size_t g = 0; g < problem.groups.size(); ++g) {
    const Group& group = problem.groups[g];
    if (group.empty() || group.size() > 255)
      throw Error(fmt::format("group {} of {} choices", g, group.size()), "1 to 255", todo);
    if (std::none_of(group.begin(), group.end(), [](const Choice& c) { return std::isfinite(c.loss); }))
      throw Error(fmt::format("group {} without a choice of finite loss", g), "one at least", todo);
    std::vector<double> largest(problem.limits.size(), 0);
    for (const Choice& choice : group) {
      if (std::isnan(choice.loss) || choice.loss == -std::numeric_limits<double>::infinity())
        throw Error(fmt::format("group {} with a loss of {}", g, choice.loss), "a number, or infinity", todo);
      if (choice.cost.size() != problem.limits.size())
        throw Error(fmt::format("group {} with {} costs for {} budgets", g, choice.cost.size(), problem.limits.size()),
                    "one cost for each budget", todo);
      for (size_t b = 0; b < largest.size(); ++b) {
        if (choice.cost[b] < 0) throw Error(fmt::format("group {} with cost {}", g, choice.cost[b]), "0 or more", todo);
        largest[b] = std::max(largest[b], static_cast<double>(choice.cost[b]));
      }
    }
    for (size_t b = 0; b < most.size(); ++b) most[b] += largest[b];
  }
  for (const Edge& edge : problem.edges) {
    const bool known = edge.from < problem.groups.size() && edge.to < problem.groups.size() && edge.from != edge.to &&
                       edge.budget < problem.limits.size();
    if (!known || edge.cost.size() != problem.groups[edge.from].size() * problem.groups[edge.to].size())
      throw Error(fmt::format("an edge from group {} to {}", edge.from, edge.to),
                  "two groups, and a cost for each pair of their choices", todo);
    const auto [least, largest] = std::minmax_element(edge.cost.begin(), edge.cost.end());
    if (*least < 0) throw Error(fmt::format("an edge of cost {}", *least), "0 or more", todo);
    most[edge.budget] += static_cast<double>(*largest);
  }
  constexpr double kMostUnits = 4e18;  // sums stay within int64_t
  for (double units : most)
    if (units > kMostUnits) throw Error(fmt::format("costs of {} units", units), "up to 4e18", "choose a larger unit");
}

Solution solve_greedy(const Problem& problem) {
  check(problem);
  Solution s = knapsack::cheapest(problem);
  if (problem.limits.size() == 1 && problem.edges.empty())
    s = greedy_one_budget(problem, std::move(s));
  else
    knapsack::improve(problem, s);
  s.method = "greedy";
  return s;
}

}  // namespace hpqf::plan
