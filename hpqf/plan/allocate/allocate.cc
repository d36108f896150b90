#include "hpqf/plan/allocate/allocate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/plan/allocate/choices.h"

namespace hpqf::plan {
namespace {

using knapsack::Choices;
using knapsack::Kind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Amount> amounts(const Choices& c, const Solution& s) {
  std::vector<Amount> all;
  for (size_t b = 0; b < c.kinds.size(); ++b)
    all.push_back({knapsack::name(c.kinds[b]), knapsack::amount(c, c.kinds[b], s.costs[b]),
                   c.problem.limits[b] == kNoLimit ? kInfinity : knapsack::amount(c, c.kinds[b], c.problem.limits[b])});
  return all;
}

// The Error of the solver in the user's units.
[[noreturn]] void refuse(const Choices& c, const Budget& budget) {
  const std::vector<int64_t> least = least_costs(c.problem);
  std::vector<std::string> parts;
  for (size_t b = 0; b < c.kinds.size(); ++b)
    if (c.problem.limits[b] != kNoLimit)
      parts.push_back(fmt::format("{} {}", knapsack::name(c.kinds[b]), knapsack::amount(c, c.kinds[b], least[b])));
  throw Error(fmt::format("an allocation with {}", to_string(budget)),
              fmt::format("the smallest possible: {}{}", fmt::join(parts, ", "),
                          parts.size() > 1 ? " (each alone, the others left out)" : ""),
              "raise the budget, unlock layers, or measure lower formats");
}

// The least cost whose best loss keeps to `loss`: the best loss falls with the cost, so halving finds it.
Solution cheapest_within(Choices& c, double loss, const KnapsackOptions& options) {
  Solution best = solve(c.problem, options);  // without a limit
  if (!(best.loss <= loss))
    throw Error(fmt::format("a predicted loss of at most {} nats", loss),
                fmt::format("the smallest possible is {:.6g} nats", best.loss),
                "raise it, or measure formats with more bits");
  int64_t low = least_costs(c.problem)[0] - 1, high = best.costs[0];  // low is not enough, high is
  while (high - low > 1) {
    c.problem.limits[0] = low + (high - low) / 2;
    Solution s;
    try {
      s = solve(c.problem, options);
    } catch (const Error&) {  // with conversions the least may be above the sum of the least
      low = c.problem.limits[0];
      continue;
    }
    if (s.loss <= loss) {
      best = std::move(s);
      high = best.costs[0];
    } else {
      low = c.problem.limits[0];
    }
  }
  c.problem.limits[0] = kNoLimit;
  return best;
}

// Every slot in one format, where all of them can take it.
std::vector<Candidate> uniform_plans(const Sensitivity& sensitivity, const Choices& c) {
  std::vector<BlockFormat> all;
  for (const knapsack::Slot& slot : c.slots)
    for (const LayerPrecision& p : slot.choices)
      for (Operand operand : slot.operands) {
        const BlockFormat& format = format_of(p, operand);
        if (slot.locked.empty() && std::find(all.begin(), all.end(), format) == all.end()) all.push_back(format);
      }
  std::vector<Candidate> found;
  for (const BlockFormat& format : all) {
    std::vector<int> picks;
    for (size_t k = 0; k < c.slots.size(); ++k) {
      const knapsack::Slot& slot = c.slots[k];
      int pick = slot.locked.empty() ? -1 : 0;
      for (size_t i = 0; i < slot.choices.size() && pick < 0; ++i) {
        const bool uniform = std::all_of(slot.operands.begin(), slot.operands.end(), [&](Operand operand) {
          const bool gradient = operand == Operand::dgrad || operand == Operand::wgrad;
          return gradient || format_of(slot.choices[i], operand) == format;
        });
        if (uniform && std::isfinite(c.problem.groups[k][i].loss)) pick = static_cast<int>(i);
      }
      if (pick < 0) break;
      picks.push_back(pick);
    }
    if (picks.size() < c.slots.size()) continue;
    const Solution s = evaluate(c.problem, picks);
    if (!fits(c.problem, s)) continue;
    const std::string name = "uniform " + formats::to_string(format);
    found.push_back({name, knapsack::plan_of(sensitivity, c, picks, name), s.loss, amounts(c, s)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
  if (found.size() > 1) found.erase(found.begin() + 1, found.end());
  return found;
}

void add_front(const Sensitivity& sensitivity, const Choices& c, const AllocationOptions& options, Allocation& a) {
  Front front = pareto_front(c.problem, options.front_points, options.solver);
  a.front_kind = knapsack::name(c.kinds[0]);
  a.front_found = front.found;
  a.front_exact = front.exact;
  ModelFacts model{sensitivity.model, {}};
  for (const LayerSensitivity& layer : sensitivity.layers) model.layers.push_back({layer.name, "", layer.kind, 0});
  for (const FrontPoint& p : front.points) {
    AllocationPoint point{knapsack::amount(c, c.kinds[0], p.cost), p.loss, {}, {}};
    point.plan = knapsack::plan_of(sensitivity, c, p.picks, fmt::format("front, {} {:.6g}", a.front_kind, point.cost));
    if (!a.front.empty()) point.changes = a.front.back().plan.diff(point.plan, model);
    a.front.push_back(std::move(point));
  }
}

}  // namespace

void check(const Budget& budget) {
  const std::pair<const char*, std::optional<double>> all[] = {{"bits", budget.bits},
                                                               {"bytes", budget.bytes},
                                                               {"seconds", budget.seconds},
                                                               {"bops", budget.bops},
                                                               {"loss", budget.loss}};
  bool any = false;
  for (const auto& [name, value] : all) {
    any |= value.has_value();
    if (value && !(*value >= 0 && std::isfinite(*value)))
      throw Error(fmt::format("a budget of {} = {}", name, *value), "a finite number, 0 or more", "correct the number");
  }
  if (!any)
    throw Error("an allocation without a budget", "one of bits, bytes, seconds, bops and loss, or several",
                "say what the plan may spend, e.g. bits=4.0");
}

double solver_score(const LayerSensitivity& layer, Operand operand, const BlockFormat& format, double standard_errors) {
  const FormatScore* own = find_score(layer, operand, format);
  if (!own) return kInfinity;
  auto careful = [&](const FormatScore& s) { return s.score + standard_errors * s.standard_error; };
  double score = careful(*own);
  const int bits = formats::info(format.format).bits;
  for (const FormatScore& other : layer.scores)
    if (other.operand == operand && formats::info(other.format.format).bits > bits && std::isfinite(other.score))
      score = std::max(score, careful(other));
  return score;
}

Allocation allocate(const Sensitivity& sensitivity, const Budget& budget, const AllocationOptions& options) {
  check(sensitivity);
  check(budget);
  if (!(options.standard_errors >= 0 && std::isfinite(options.standard_errors)))
    throw Error(fmt::format("{} standard errors", options.standard_errors), "a finite number, 0 or more", "use 1");
  for (const Lock& lock : options.locks) {
    check(lock.precision, fmt::format("lock of \"{}\"", lock.layers));
    if (std::none_of(sensitivity.layers.begin(), sensitivity.layers.end(),
                     [&](const LayerSensitivity& layer) { return matches(lock.layers, layer.name); }))
      throw Error(fmt::format("a lock for layers \"{}\"", lock.layers), "a pattern that matches a measured layer",
                  "correct the pattern");
  }
  Choices c = knapsack::build(sensitivity, budget, options);
  const bool loss_alone = c.problem.limits[0] == kNoLimit && budget.loss;
  Solution best;
  try {
    best = loss_alone ? cheapest_within(c, *budget.loss, options.solver) : solve(c.problem, options.solver);
  } catch (const Error& e) {
    if (loss_alone) throw;
    refuse(c, budget);
  }
  if (budget.loss && best.loss > *budget.loss)
    throw Error(fmt::format("an allocation with {}", to_string(budget)),
                fmt::format("within the other budgets the smallest loss is {:.6g} nats", best.loss),
                "raise one of the budgets");

  Allocation a;
  if (loss_alone) c.problem.limits[0] = best.costs[0];  // the candidates compete at that cost
  const std::string why = fmt::format("allocated for {}", to_string(budget));
  a.plan = knapsack::plan_of(sensitivity, c, best.picks, why);
  a.loss = best.loss;
  a.bound = best.bound;
  a.exact = best.exact;
  a.method = best.method;
  a.amounts = amounts(c, best);
  a.candidates.push_back({best.exact ? "exact" : "solver", a.plan, best.loss, a.amounts});
  const Solution greedy = solve_greedy(c.problem);
  a.candidates.push_back({"greedy", knapsack::plan_of(sensitivity, c, greedy.picks, "greedy, for " + to_string(budget)),
                          greedy.loss, amounts(c, greedy)});
  for (Candidate& uniform : uniform_plans(sensitivity, c)) a.candidates.push_back(std::move(uniform));
  if (options.front_points > 0) add_front(sensitivity, c, options, a);
  return a;
}

FinalChoice choose_final(const std::vector<Candidate>& candidates, const std::vector<double>& measured) {
  if (candidates.size() != measured.size() || candidates.empty())
    throw Error(fmt::format("{} measurements for {} candidates", measured.size(), candidates.size()),
                "one for each candidate", "measure every candidate on the same fresh data");
  FinalChoice choice{candidates.size(), ""};
  for (size_t i = 0; i < measured.size(); ++i)
    if (std::isfinite(measured[i]) && (choice.index == candidates.size() || measured[i] < measured[choice.index]))
      choice.index = i;
  if (choice.index == candidates.size())
    throw Error("a choice among candidates none of which gave a finite measurement", "one finite number at least",
                "raise the budget: every plan breaks the model");
  choice.reason = fmt::format("{}: measured {:.6g}, the least of {}", candidates[choice.index].name,
                              measured[choice.index], candidates.size());
  for (size_t i = 0; i < measured.size(); ++i)
    if (i != choice.index) choice.reason += fmt::format(", {} {:.6g}", candidates[i].name, measured[i]);
  return choice;
}

}  // namespace hpqf::plan
