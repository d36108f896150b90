// Chains: dynamic programming over (choice of the last group, cost).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "hpqf/plan/allocate/improve.h"

namespace hpqf::plan::knapsack {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Cost of the edge between the groups at two neighbouring places of the chain; 0 when there is none.
struct Links {
  const Problem& problem;
  const std::vector<size_t>& order;
  std::vector<const Edge*> edges;  // from place p - 1 to p

  Links(const Problem& p, const std::vector<size_t>& o) : problem(p), order(o), edges(o.size(), nullptr) {
    std::vector<size_t> place(o.size());
    for (size_t k = 0; k < o.size(); ++k) place[o[k]] = k;
    for (const Edge& edge : p.edges) edges[std::max(place[edge.from], place[edge.to])] = &edge;
  }
  int64_t cost(size_t p, size_t before, size_t now) const {
    const Edge* edge = edges[p];
    if (!edge) return 0;
    const bool forward = edge->from == order[p - 1];
    const size_t i = forward ? before : now, j = forward ? now : before;
    return edge->cost[i * problem.groups[edge->to].size() + j];
  }
  int64_t least(size_t p) const {
    return edges[p] ? *std::min_element(edges[p]->cost.begin(), edges[p]->cost.end()) : 0;
  }
};

int64_t least_cost(const Group& group) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Choice& choice : group)
    if (std::isfinite(choice.loss)) least = std::min(least, choice.cost[0]);
  return least;
}

}  // namespace

Solution solve_chain(const Problem& problem, const std::vector<size_t>& order, const KnapsackOptions& options) {
  Solution greedy = solve_greedy(problem);  // Error when nothing fits
  if (order.empty()) {
    greedy.bound = greedy.loss;
    greedy.exact = true;
    return greedy;
  }
  const Links links(problem, order);
  // Everything counts from the cheapest choices and links, which may not go together.
  int64_t base = 0, most = 0, unit = 0, states = 0;
  for (size_t p = 0; p < order.size(); ++p) {
    const Group& group = problem.groups[order[p]];
    const int64_t least = least_cost(group), least_link = links.least(p);
    base += least + least_link;
    states += static_cast<int64_t>(group.size());
    int64_t largest = 0;
    for (const Choice& choice : group)
      if (std::isfinite(choice.loss)) {
        unit = std::gcd(unit, choice.cost[0] - least);
        largest = std::max(largest, choice.cost[0] - least);
      }
    most += largest;
    if (!links.edges[p]) continue;
    for (int64_t cost : links.edges[p]->cost) unit = std::gcd(unit, cost - least_link);
    most += *std::max_element(links.edges[p]->cost.begin(), links.edges[p]->cost.end()) - least_link;
  }
  const int64_t spare = std::min(most, problem.limits[0] - base),
                cells_allowed = std::max<int64_t>(1, options.max_cells / states);
  unit = std::max<int64_t>(unit, 1);
  const bool exact = spare / unit + 1 <= cells_allowed;
  if (!exact) unit = spare / cells_allowed + 1;
  const auto cells = static_cast<size_t>(spare / unit + 1);

  std::vector<std::vector<std::vector<uint8_t>>> from(order.size());  // [place][choice][cell]: choice before
  std::vector<std::vector<double>> last;                              // [choice][cell]
  for (size_t p = 0; p < order.size(); ++p) {
    const Group& group = problem.groups[order[p]];
    const int64_t least = least_cost(group), least_link = links.least(p);
    std::vector<std::vector<double>> next(group.size(), std::vector<double>(cells, kInfinity));
    from[p].assign(group.size(), std::vector<uint8_t>(cells));
    for (size_t i = 0; i < group.size(); ++i) {
      if (!std::isfinite(group[i].loss)) continue;
      const int64_t own = group[i].cost[0] - least;
      if (p == 0) {
        for (size_t j = static_cast<size_t>(own / unit); j < cells; ++j) next[i][j] = group[i].loss;
        continue;
      }
      for (size_t before = 0; before < last.size(); ++before) {
        const auto step = static_cast<size_t>((own + links.cost(p, before, i) - least_link) / unit);
        for (size_t j = step; j < cells; ++j) {
          const double candidate = last[before][j - step] + group[i].loss;
          if (!(candidate < next[i][j])) continue;
          next[i][j] = candidate;
          from[p][i][j] = static_cast<uint8_t>(before);
        }
      }
    }
    last = std::move(next);
  }

  auto trace = [&](size_t cell) {
    size_t choice = 0;
    for (size_t i = 1; i < last.size(); ++i)
      if (last[i][cell] < last[choice][cell]) choice = i;
    std::vector<int> picks(order.size());
    for (size_t p = order.size(); p-- > 0;) {
      picks[order[p]] = static_cast<int>(choice);
      if (p == 0) break;
      const size_t before = from[p][choice][cell];
      const int64_t own = problem.groups[order[p]][choice].cost[0] - least_cost(problem.groups[order[p]]);
      cell -= static_cast<size_t>((own + links.cost(p, before, choice) - links.least(p)) / unit);
      choice = before;
    }
    return evaluate(problem, std::move(picks));
  };
  auto best_at = [&](size_t cell) {
    double best = kInfinity;
    for (const auto& losses : last) best = std::min(best, losses[cell]);
    return best;
  };

  // Rounded-down costs may overrun by a unit for each group and link: go down until the real costs fit.
  Solution best = greedy;
  const size_t tried = exact ? 1 : std::min(cells, 2 * order.size() + 1);
  for (size_t k = 0; k < tried; ++k) {
    const size_t cell = cells - 1 - k;
    if (!std::isfinite(best_at(cell))) break;
    Solution s = trace(cell);
    if (fits(problem, s) && s.loss < best.loss) best = std::move(s);
  }
  best.bound = std::min(best.loss, best_at(cells - 1));
  best.exact = exact;
  best.method = fmt::format("{}: dynamic programming along chains, {} cells of {} units", exact ? "exact" : "bucketed",
                            cells, unit);
  return best;
}

}  // namespace hpqf::plan::knapsack
