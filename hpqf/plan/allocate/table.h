// The dynamic programme over one budget, as a table from which solutions for every budget can be read.
#pragma once
#include <cstdint>
#include <vector>

#include "hpqf/plan/allocate/knapsack.h"

namespace hpqf::plan::knapsack {

// Losses and costs of one budget; `index` is the choice in the caller's group.
struct Item {
  double loss;
  int64_t cost;
  int index;
};
using Items = std::vector<std::vector<Item>>;

// The choices of finite loss that no other choice of their group beats in both loss and cost: cost rises, loss falls.
HPQF_API Items undominated(const std::vector<Group>& groups, size_t budget);

class HPQF_API Table {
 public:
  // For budgets from the cheapest choices up to `limit`. Items as from undominated(); the cheapest must fit.
  Table(const Items& items, int64_t limit, int64_t max_cells);

  bool exact() const { return exact_; }            // every unit is a real cost
  int64_t unit() const { return unit_; }           // cost of one cell
  int64_t cells() const { return capacity_ + 1; }  // cell j is the budget base + j * unit
  double loss(int64_t cell) const { return last_[static_cast<size_t>(cell)]; }
  int64_t cell_of(int64_t budget) const;  // the last cell that `budget` pays for
  int64_t budget_of(int64_t cell) const { return base_ + cell * unit_; }
  std::vector<int> picks(int64_t cell) const;  // the caller's choices, in the order of the caller's groups

 private:
  const Items& items_;
  std::vector<size_t> order_;
  std::vector<std::vector<int64_t>> steps_;  // cost above the cheapest choice, in units
  std::vector<std::vector<uint8_t>> taken_;
  std::vector<double> last_;
  int64_t base_ = 0, unit_ = 1, capacity_ = 0;
  bool exact_ = true;
};

}  // namespace hpqf::plan::knapsack
