#include "hpqf/plan/allocate/sparse.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hpqf::plan::knapsack {
namespace {

struct State {
  int64_t cost;
  double loss;
  int32_t node;  // of the tree of picks
};
struct Node {
  int32_t before;
  uint8_t pick;  // place in the group's items
};

double priced(const Item& item, double multiplier) { return item.loss + multiplier * static_cast<double>(item.cost); }

double least_priced(const std::vector<Item>& group, double multiplier) {
  double least = std::numeric_limits<double>::infinity();
  for (const Item& item : group) least = std::min(least, priced(item, multiplier));
  return least;
}

// `into` and `more` are sorted by cost; keeps what no state before it beats.
void merge(std::vector<State>& into, const std::vector<State>& more, std::vector<State>& spare) {
  spare.clear();
  auto add = [&](const State& s) {
    if (spare.empty() || s.loss < spare.back().loss) {
      if (!spare.empty() && spare.back().cost == s.cost)
        spare.back() = s;
      else
        spare.push_back(s);
    }
  };
  size_t i = 0, j = 0;
  while (i < into.size() || j < more.size()) {
    const bool first =
        j == more.size() || (i < into.size() && (into[i].cost < more[j].cost ||
                                                 (into[i].cost == more[j].cost && into[i].loss <= more[j].loss)));
    add(first ? into[i++] : more[j++]);
  }
  std::swap(into, spare);
}

}  // namespace

Relaxation relax_linear(const Items& items, int64_t limit) {
  // Along the lower hulls, steepest steps first, until the budget is spent: that step's rate is the multiplier.
  struct Step {
    double rate;
    int64_t cost;
  };
  std::vector<Step> steps;
  int64_t spare = limit;
  for (const auto& group : items) {
    spare -= group.front().cost;
    std::vector<Item> hull;
    auto rate = [](const Item& a, const Item& b) { return (a.loss - b.loss) / static_cast<double>(b.cost - a.cost); };
    for (const Item& item : group) {
      while (hull.size() > 1 && rate(hull.back(), item) >= rate(hull[hull.size() - 2], hull.back())) hull.pop_back();
      hull.push_back(item);
    }
    for (size_t i = 1; i < hull.size(); ++i)
      steps.push_back({rate(hull[i - 1], hull[i]), hull[i].cost - hull[i - 1].cost});
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.rate > b.rate; });
  Relaxation r;
  for (const Step& step : steps) {
    if (step.cost > spare) {
      r.multiplier = step.rate;
      break;
    }
    spare -= step.cost;
  }
  for (const auto& group : items) r.bound += least_priced(group, r.multiplier);
  if (r.multiplier > 0) r.bound -= r.multiplier * static_cast<double>(limit);
  return r;
}

SparseResult solve_sparse(const Items& items, int64_t limit, double known, const Relaxation& relaxation,
                          int64_t max_states) {
  const double multiplier = relaxation.multiplier;
  // Sums of this many terms differ from the true ones by less than this; never drop a state for rounding.
  const double rounding =
      1e-14 * static_cast<double>(items.size() + 1) * (std::abs(known) + multiplier * static_cast<double>(limit));
  const double window = known - relaxation.bound + rounding;

  // What each group can still take, dearest decisions first: they leave the fewest states.
  struct Part {
    size_t group;
    double floor;   // least priced item
    double second;  // what the next best adds
    std::vector<uint8_t> places;
  };
  std::vector<Part> parts;
  int64_t rest = 0;
  for (size_t g = 0; g < items.size(); ++g) {
    Part part{g, least_priced(items[g], multiplier), std::numeric_limits<double>::infinity(), {}};
    for (size_t i = 0; i < items[g].size(); ++i) {
      const double penalty = priced(items[g][i], multiplier) - part.floor;
      if (penalty > window) continue;
      part.places.push_back(static_cast<uint8_t>(i));
      if (penalty > 0) part.second = std::min(part.second, penalty);
    }
    rest += items[g][part.places.front()].cost;
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    if ((a.places.size() == 1) != (b.places.size() == 1)) return a.places.size() == 1;
    return a.second > b.second;
  });

  SparseResult result;
  std::vector<Node> nodes{{-1, 0}};
  std::vector<State> states{{0, 0.0, 0}}, next, shifted, spare;
  double floor = 0;
  for (const Part& part : parts) {
    floor += part.floor;
    const auto& group = items[part.group];
    rest -= group[part.places.front()].cost;  // what the groups after this one cost at least
    next.clear();
    for (uint8_t place : part.places) {
      shifted.clear();
      for (const State& s : states) {
        const State moved{s.cost + group[place].cost, s.loss + group[place].loss, s.node};
        if (moved.cost + rest > limit) break;  // sorted by cost
        if (moved.loss + multiplier * static_cast<double>(moved.cost) - floor > window) continue;
        shifted.push_back({moved.cost, moved.loss, static_cast<int32_t>(nodes.size())});
        nodes.push_back({s.node, place});
      }
      merge(next, shifted, spare);
    }
    std::swap(states, next);
    if (static_cast<int64_t>(nodes.size()) > max_states) {
      result.states = static_cast<int64_t>(nodes.size());
      return result;
    }
  }
  result.complete = true;
  result.states = static_cast<int64_t>(nodes.size());
  if (states.empty() || !(states.back().loss < known)) return result;
  std::vector<int> picks(items.size());
  int32_t node = states.back().node;  // dearest, so the one of least loss
  for (size_t k = parts.size(); k-- > 0; node = nodes[static_cast<size_t>(node)].before)
    picks[parts[k].group] = items[parts[k].group][nodes[static_cast<size_t>(node)].pick].index;
  result.picks = std::move(picks);
  return result;
}

}  // namespace hpqf::plan::knapsack
