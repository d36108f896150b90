#include "hpqf/plan/allocate/knapsack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/table.h"

namespace hpqf::plan {
namespace {

// A small stream of random numbers for problems; the tests need no more of it than determinism.
struct Dice {
  uint64_t state;
  uint64_t next() { return state = state * 6364136223846793005u + 1442695040888963407u; }
  int64_t whole(int64_t least, int64_t most) {
    return least + static_cast<int64_t>((next() >> 33) % static_cast<uint64_t>(most - least + 1));
  }
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }
};

Problem random_problem(Dice& dice, size_t groups, size_t choices, size_t budgets, int64_t grain = 1) {
  Problem p;
  std::vector<int64_t> least(budgets), most(budgets);
  for (size_t g = 0; g < groups; ++g) {
    Group group;
    for (size_t i = 0; i < choices; ++i) {
      Choice c{dice.real(), {}};
      for (size_t b = 0; b < budgets; ++b) c.cost.push_back(grain * dice.whole(0, 40));
      group.push_back(c);
    }
    p.groups.push_back(group);
    for (size_t b = 0; b < budgets; ++b) {
      int64_t low = group[0].cost[b], high = low;
      for (const Choice& c : group) low = std::min(low, c.cost[b]), high = std::max(high, c.cost[b]);
      least[b] += low;
      most[b] += high;
    }
  }
  for (size_t b = 0; b < budgets; ++b) p.limits.push_back(least[b] + (most[b] - least[b]) * dice.whole(0, 100) / 100);
  return p;
}

void add_edges(Problem& p, Dice& dice, const std::vector<std::pair<size_t, size_t>>& pairs) {
  for (auto [a, b] : pairs) {
    Edge e{a, b, 0, {}};
    for (size_t k = 0; k < p.groups[a].size() * p.groups[b].size(); ++k) e.cost.push_back(dice.whole(0, 15));
    p.edges.push_back(e);
  }
}

// The definition: every combination. Infinity when none fits.
double brute_force(const Problem& p) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> picks(p.groups.size(), 0);
  for (;;) {
    const Solution s = evaluate(p, picks);
    if (fits(p, s)) best = std::min(best, s.loss);
    size_t g = 0;
    while (g < picks.size() && ++picks[g] == static_cast<int>(p.groups[g].size())) picks[g++] = 0;
    if (g == picks.size()) return best;
  }
}

// A solution, or none when refused.
std::optional<Solution> solved(const Problem& p, const KnapsackOptions& o = {}) {
  try {
    return solve(p, o);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(Knapsack, OneBudgetEqualsBruteForce) {
  Dice dice{1};
  for (int trial = 0; trial < 300; ++trial) {
    const Problem p = random_problem(dice, static_cast<size_t>(dice.whole(1, 6)), static_cast<size_t>(dice.whole(1, 5)),
                                     1, trial % 3 ? 1 : 7);
    const Solution s = solve(p);
    EXPECT_NEAR(s.loss, brute_force(p), 1e-12) << trial;
    EXPECT_TRUE(s.exact);
    EXPECT_TRUE(fits(p, s)) << trial;
    EXPECT_NEAR(s.gap(), 0, 1e-12);
    EXPECT_EQ(evaluate(p, s.picks).costs, s.costs);
  }
}

TEST(Knapsack, NeverAboveGreedyNeverOverBudgetAndTheSameTwice) {
  Dice dice{2};
  int better = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Problem p = random_problem(dice, 40, 6, 1, 1 + trial);
    for (int64_t cells : {int64_t{12'000'000}, int64_t{400}}) {  // exact, and coarse buckets
      const KnapsackOptions options{.max_cells = cells};
      const Solution s = solve(p, options), greedy = solve_greedy(p);
      EXPECT_LE(s.loss, greedy.loss) << trial;
      EXPECT_LE(s.bound, s.loss) << trial;
      EXPECT_TRUE(fits(p, s) && fits(p, greedy)) << trial;
      EXPECT_EQ(solve(p, options).picks, s.picks) << trial;
      better += s.loss < greedy.loss;
    }
    EXPECT_EQ(solve(p).method, solve(p).method);
  }
  EXPECT_GT(better, 25) << "if greedy were always as good, nothing would be tested";
}

TEST(Knapsack, BucketsBoundTheExactOptimum) {
  Dice dice{3};
  int bucketed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Problem p = random_problem(dice, 6, 4, 1, 1);
    const Solution s = solve(p, {.max_cells = 24});
    const double best = brute_force(p);
    bucketed += !s.exact;
    EXPECT_LE(s.bound, best + 1e-12) << trial;
    EXPECT_GE(s.loss, best - 1e-12) << trial;
    EXPECT_TRUE(fits(p, s)) << trial;
  }
  EXPECT_GT(bucketed, 100);
}

TEST(Knapsack, APlanThatFitsToTheUnitIsNotRefused) {
  // 1000 groups of 1,000,003 units: buckets that round up would refuse the budget of exactly their sum.
  Problem p{{}, {1000 * 1'000'003LL}, {}};
  for (int g = 0; g < 1000; ++g) p.groups.push_back({{1.0, {999'983}}, {0.5, {1'000'003}}});
  const Solution s = solve(p);
  EXPECT_TRUE(s.exact) << s.method;
  EXPECT_DOUBLE_EQ(s.loss, 500);
}

TEST(Knapsack, ChainsEqualBruteForce) {
  Dice dice{4};
  int refused = 0, solutions = 0;
  for (int trial = 0; trial < 200; ++trial) {
    Problem p = random_problem(dice, 6, 3, 1);
    // Two chains in an order that is not that of the groups, and one group alone.
    add_edges(p, dice, {{3, 0}, {0, 2}, {5, 1}});
    p.limits[0] += 20;
    const double best = brute_force(p);
    const auto s = solved(p);
    ASSERT_EQ(s.has_value(), std::isfinite(best)) << trial;
    if (!s) {
      ++refused;
      continue;
    }
    ++solutions;
    EXPECT_NEAR(s->loss, best, 1e-12) << trial;
    EXPECT_TRUE(s->exact && fits(p, *s)) << trial;
    const auto coarse = solved(p, {.max_cells = 200});
    ASSERT_TRUE(coarse.has_value());
    EXPECT_TRUE(fits(p, *coarse));
    EXPECT_LE(coarse->bound, best + 1e-12);
  }
  EXPECT_GT(solutions, 100);
}

TEST(Knapsack, SeveralBudgetsHaveAnHonestGap) {
  Dice dice{5};
  int solutions = 0;
  double gaps = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Problem p = random_problem(dice, 6, 4, trial % 2 ? 2 : 3);
    const double best = brute_force(p);
    const auto s = solved(p);
    if (!std::isfinite(best)) {
      EXPECT_FALSE(s.has_value());
      continue;
    }
    if (!s) continue;  // a search for feasible picks may miss them; counted below
    ++solutions;
    EXPECT_TRUE(fits(p, *s)) << trial;
    EXPECT_LE(s->bound, best + 1e-9) << trial;
    EXPECT_GE(s->loss, best - 1e-12) << trial;
    EXPECT_LE(s->loss, solve_greedy(p).loss + 1e-12) << trial;
    gaps += s->gap() / best;
  }
  EXPECT_GT(solutions, 100);
  EXPECT_LT(gaps / solutions, 0.25);
}

TEST(Knapsack, EdgesWithACycleHaveAnHonestGap) {
  Dice dice{6};
  int solutions = 0;
  for (int trial = 0; trial < 100; ++trial) {
    Problem p = random_problem(dice, 5, 3, 1);
    add_edges(p, dice, {{0, 1}, {1, 2}, {2, 0}, {1, 3}, {1, 4}});
    p.limits[0] += 30;
    const double best = brute_force(p);
    const auto s = solved(p);
    if (!s) continue;
    ++solutions;
    EXPECT_TRUE(fits(p, *s));
    EXPECT_LE(s->bound, best + 1e-9) << trial;
    EXPECT_GE(s->loss, best - 1e-12) << trial;
  }
  EXPECT_GT(solutions, 50);
}

TEST(Knapsack, TheFrontIsWhatEachBudgetBuys) {
  Dice dice{7};
  const Problem p = random_problem(dice, 5, 4, 1);
  const Front front = pareto_front(p, 1000);
  EXPECT_TRUE(front.exact);
  EXPECT_EQ(front.found, static_cast<int64_t>(front.points.size()));
  Problem at = p;
  for (size_t i = 0; i < front.points.size(); ++i) {
    at.limits[0] = front.points[i].cost;
    EXPECT_NEAR(solve(at).loss, front.points[i].loss, 1e-12);
    if (i) {
      EXPECT_GT(front.points[i].cost, front.points[i - 1].cost);
      EXPECT_LT(front.points[i].loss, front.points[i - 1].loss);
      at.limits[0] = front.points[i].cost - 1;
      EXPECT_NEAR(solve(at).loss, front.points[i - 1].loss, 1e-12) << "nothing better just below";
    }
  }
  const Front thin = pareto_front(p, 4);
  EXPECT_LE(thin.points.size(), 4u);
  EXPECT_EQ(thin.points.front().cost, front.points.front().cost);
  EXPECT_EQ(thin.points.back().cost, front.points.back().cost);
  EXPECT_EQ(thin.found, front.found);
}

TEST(Knapsack, ABucketedFrontHasExactPoints) {
  Dice dice{8};
  const Problem p = random_problem(dice, 12, 5, 1);
  const KnapsackOptions coarse{.max_cells = 12 * 30};  // 30 buckets
  const Front front = pareto_front(p, 20, coarse);
  ASSERT_GT(front.points.size(), 5u);
  for (const FrontPoint& point : front.points) {
    const Solution s = evaluate(p, point.picks);
    EXPECT_EQ(s.costs[0], point.cost);
    EXPECT_DOUBLE_EQ(s.loss, point.loss);
    Problem at = p;
    at.limits[0] = point.cost;
    if (front.exact) {
      EXPECT_NEAR(solve(at).loss, point.loss, 1e-12);
    }
  }
}

TEST(Knapsack, TheTableAndTheStatesAgree) {
  Dice dice{9};
  for (int trial = 0; trial < 100; ++trial) {
    const Problem p = random_problem(dice, 30, 6, 1);
    const knapsack::Items items = knapsack::undominated(p.groups, 0);
    const knapsack::Table table(items, p.limits[0], 12'000'000);
    ASSERT_TRUE(table.exact());
    const Solution s = evaluate(p, table.picks(table.cell_of(p.limits[0])));
    EXPECT_TRUE(fits(p, s));
    EXPECT_NEAR(s.loss, solve(p).loss, 1e-12) << trial;
  }
}

TEST(Knapsack, SaysTheSmallestPossible) {
  const Problem p{{{{1, {10}}, {0, {20}}}, {{1, {7}}, {INFINITY, {1}}}}, {16}, {}};
  try {
    solve(p);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.allowed().find("smallest possible is 17 for a budget of 16"), std::string::npos) << e.allowed();
  }
  EXPECT_EQ(solve({p.groups, {17}, {}}).costs[0], 17);
}

TEST(Knapsack, RefusesWhatIsNoProblem) {
  EXPECT_THROW(solve({{{}}, {1}, {}}), Error);
  EXPECT_THROW(solve({{{{0, {-1}}}}, {1}, {}}), Error);
  EXPECT_THROW(solve({{{{0, {1, 2}}}}, {1}, {}}), Error);
  EXPECT_THROW(solve({{{{NAN, {1}}}}, {1}, {}}), Error);
  EXPECT_THROW(solve({{{{INFINITY, {1}}}}, {1}, {}}), Error);
  EXPECT_THROW(solve({{{{0, {1}}}, {{0, {1}}}}, {1}, {{0, 1, 0, {1, 2}}}}), Error);
  EXPECT_THROW(solve({{{{0, {int64_t{1} << 62}}}, {{0, {int64_t{1} << 62}}}}, {1}, {}}), Error);
  EXPECT_EQ(solve({{}, {0}, {}}).loss, 0) << "no group costs nothing";
}

}  // namespace
}  // namespace hpqf::plan
