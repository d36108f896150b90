#include "hpqf/plan/allocate/table.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hpqf::plan::knapsack {
namespace {

constexpr int64_t kBlock = 1024;  // cells: the rows of losses and choices of a block stay in the L1 cache

// next[j] = min over choices of before[j - step] + loss. `before` holds the best loss for *at most* j units and is
// constant after its end. The choice is kept in 64 bits beside the 64 bits of the loss, so that compilers turn the
// comparison into masks; it is narrowed once at the end of a block.
void relax(const std::vector<double>& before, const std::vector<Item>& items, const std::vector<int64_t>& steps,
           std::vector<double>& next, std::vector<uint8_t>& taken) {
  const auto size = static_cast<int64_t>(next.size()), reach = static_cast<int64_t>(before.size());
  int64_t choice[kBlock];
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t last = std::min(size, first + kBlock);
    double* loss = next.data() + first;
    for (int64_t j = first; j < last; ++j) {
      loss[j - first] = before[static_cast<size_t>(std::min(j, reach - 1))] + items[0].loss;
      choice[j - first] = 0;
    }
    for (size_t i = 1; i < items.size(); ++i) {
      const int64_t step = steps[i], from = std::max(first, step);
      const int64_t inside = std::min(last, reach + step);  // cells after it see the constant end of `before`
      const double add = items[i].loss;
      const auto index = static_cast<int64_t>(i);
      const double* source = before.data();
      for (int64_t j = from; j < inside; ++j) {
        const double candidate = source[j - step] + add, old = loss[j - first];
        const bool better = candidate < old;
        loss[j - first] = better ? candidate : old;
        choice[j - first] = better ? index : choice[j - first];
      }
      for (int64_t j = std::max(from, inside); j < last; ++j) {
        const double candidate = before.back() + add;
        if (!(candidate < loss[j - first])) continue;
        loss[j - first] = candidate;
        choice[j - first] = index;
      }
    }
    for (int64_t j = first; j < last; ++j) taken[static_cast<size_t>(j)] = static_cast<uint8_t>(choice[j - first]);
  }
}

}  // namespace

Items undominated(const std::vector<Group>& groups, size_t budget) {
  Items kept;
  for (const Group& group : groups) {
    std::vector<Item> items;
    for (size_t i = 0; i < group.size(); ++i)
      if (std::isfinite(group[i].loss)) items.push_back({group[i].loss, group[i].cost[budget], static_cast<int>(i)});
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.cost != b.cost ? a.cost < b.cost : a.loss < b.loss; });
    std::vector<Item> front;
    for (const Item& item : items)
      if (front.empty() || item.loss < front.back().loss) front.push_back(item);
    kept.push_back(std::move(front));
  }
  return kept;
}

Table::Table(const Items& items, int64_t limit, int64_t max_cells) : items_(items) {
  int64_t unit = 0, most = 0;
  for (const auto& group : items) {
    base_ += group.front().cost;
    most += group.back().cost - group.front().cost;
    for (const Item& item : group) unit = std::gcd(unit, item.cost - group.front().cost);
  }
  const int64_t spare = std::min(most, limit - base_);  // 0 or more: the cheapest fits
  const auto groups = static_cast<int64_t>(std::max<size_t>(items.size(), 1));
  const int64_t finest = std::max<int64_t>(1, spare / std::max<int64_t>(1, max_cells / groups) + 1);
  unit_ = std::max<int64_t>(unit, 1);
  if (spare / unit_ + 1 > std::max<int64_t>(1, max_cells / groups)) {
    exact_ = false;
    unit_ = finest;
  }
  capacity_ = spare / unit_;

  steps_.resize(items.size());
  for (size_t g = 0; g < items.size(); ++g)
    for (const Item& item : items[g]) steps_[g].push_back((item.cost - items[g].front().cost) / unit_);
  // Narrow groups first: the table is only as wide as what the groups so far can spend.
  order_.resize(items.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return steps_[a].back() < steps_[b].back(); });

  last_ = {0.0};
  int64_t reach = 0;
  std::vector<double> next;
  for (size_t g : order_) {
    reach = std::min(capacity_, reach + steps_[g].back());
    next.resize(static_cast<size_t>(reach + 1));
    taken_.emplace_back(static_cast<size_t>(reach + 1));
    relax(last_, items[g], steps_[g], next, taken_.back());
    std::swap(last_, next);
  }
  capacity_ = reach;
}

int64_t Table::cell_of(int64_t budget) const {
  if (budget < base_) return -1;
  return std::min(capacity_, (budget - base_) / unit_);
}

std::vector<int> Table::picks(int64_t cell) const {
  std::vector<int> picks(items_.size());
  for (size_t k = order_.size(); k-- > 0;) {
    const size_t g = order_[k];
    cell = std::min(cell, static_cast<int64_t>(taken_[k].size()) - 1);
    const size_t choice = taken_[k][static_cast<size_t>(cell)];
    picks[g] = items_[g][choice].index;
    cell -= steps_[g][choice];
  }
  return picks;
}

}  // namespace hpqf::plan::knapsack
