// Groups joined by edges: minima over a spanning forest, and whether the edges are chains.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hpqf/plan/allocate/improve.h"

namespace hpqf::plan::knapsack {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 0 * infinity is NaN: a choice of infinite loss stays impossible whatever the weight.
double weighted(const Choice& choice, double loss_weight, const std::vector<double>& multipliers) {
  if (!std::isfinite(choice.loss)) return kInfinity;
  double sum = loss_weight * choice.loss;
  for (size_t b = 0; b < multipliers.size(); ++b) sum += multipliers[b] * static_cast<double>(choice.cost[b]);
  return sum;
}

size_t root_of(std::vector<size_t>& parent, size_t g) {
  while (parent[g] != g) g = parent[g] = parent[parent[g]];
  return g;
}

// Neighbours of each group through the edges that close no cycle, in the order of the edges.
std::vector<std::vector<const Edge*>> forest(const Problem& problem, bool& complete) {
  std::vector<size_t> parent(problem.groups.size());
  for (size_t g = 0; g < parent.size(); ++g) parent[g] = g;
  std::vector<std::vector<const Edge*>> edges(problem.groups.size());
  complete = true;
  for (const Edge& edge : problem.edges) {
    const size_t a = root_of(parent, edge.from), b = root_of(parent, edge.to);
    if (a == b) {
      complete = false;
      continue;
    }
    parent[a] = b;
    edges[edge.from].push_back(&edge);
    edges[edge.to].push_back(&edge);
  }
  return edges;
}

size_t other_end(const Edge& edge, size_t group) { return edge.from == group ? edge.to : edge.from; }

double edge_cost(const Problem& problem, const Edge& edge, size_t group, size_t mine, size_t other) {
  const size_t i = edge.from == group ? mine : other, j = edge.from == group ? other : mine;
  return static_cast<double>(edge.cost[i * problem.groups[edge.to].size() + j]);
}

}  // namespace

Relaxed minimise_forest(const Problem& problem, double loss_weight, const std::vector<double>& multipliers) {
  const size_t count = problem.groups.size();
  bool complete = true;
  const auto edges = forest(problem, complete);
  // Parents before children; best[g][i] is the least sum of the subtree of g when g takes i.
  std::vector<size_t> order;
  std::vector<const Edge*> up(count, nullptr);
  std::vector<bool> seen(count);
  for (size_t root = 0; root < count; ++root) {
    if (seen[root]) continue;
    seen[root] = true;
    order.push_back(root);
    for (size_t k = order.size() - 1; k < order.size(); ++k)
      for (const Edge* edge : edges[order[k]]) {
        const size_t child = other_end(*edge, order[k]);
        if (seen[child]) continue;
        seen[child] = true;
        up[child] = edge;
        order.push_back(child);
      }
  }
  std::vector<std::vector<double>> best(count);
  for (size_t g = 0; g < count; ++g)
    for (const Choice& choice : problem.groups[g]) best[g].push_back(weighted(choice, loss_weight, multipliers));
  auto through = [&](size_t g, size_t mine, size_t parent_choice) {
    const double cost = edge_cost(problem, *up[g], g, mine, parent_choice);
    return best[g][mine] + multipliers[up[g]->budget] * cost;
  };
  for (size_t k = count; k-- > 0;) {
    const size_t g = order[k];
    if (!up[g]) continue;
    std::vector<double>& parent = best[other_end(*up[g], g)];
    for (size_t j = 0; j < parent.size(); ++j) {
      double least = kInfinity;
      for (size_t i = 0; i < best[g].size(); ++i) least = std::min(least, through(g, i, j));
      parent[j] += least;
    }
  }
  Relaxed result{std::vector<int>(count), 0};
  for (size_t g : order) {
    size_t pick = 0;
    if (!up[g]) {
      pick = static_cast<size_t>(std::min_element(best[g].begin(), best[g].end()) - best[g].begin());
      result.value += best[g][pick];
    } else {
      const auto j = static_cast<size_t>(result.picks[other_end(*up[g], g)]);
      for (size_t i = 1; i < best[g].size(); ++i)
        if (through(g, i, j) < through(g, pick, j)) pick = i;
    }
    result.picks[g] = static_cast<int>(pick);
  }
  return result;
}

std::optional<std::vector<size_t>> chain_order(const Problem& problem) {
  bool complete = true;
  const auto edges = forest(problem, complete);
  if (!complete) return std::nullopt;
  for (const auto& joined : edges)
    if (joined.size() > 2) return std::nullopt;
  std::vector<size_t> order;
  std::vector<bool> seen(problem.groups.size());
  for (size_t start = 0; start < problem.groups.size(); ++start) {
    if (seen[start] || edges[start].size() > 1) continue;  // an inner group: reached from an end of its chain
    size_t g = start;
    for (bool more = true; more;) {
      seen[g] = true;
      order.push_back(g);
      more = false;
      for (const Edge* edge : edges[g]) {
        const size_t next = other_end(*edge, g);
        if (seen[next]) continue;
        g = next;
        more = true;
        break;
      }
    }
  }
  return order;
}

}  // namespace hpqf::plan::knapsack
