// From sensitivity and budget to groups and costs, and from picks back to a plan.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "hpqf/plan/allocate/allocate.h"

namespace hpqf::plan::knapsack {

enum class Kind : uint8_t { bits, bytes, seconds, bops };
const char* name(Kind kind);

// Layers that choose together (one, or a tie), and what each choice gives them.
struct Slot {
  std::vector<size_t> layers;               // of the sensitivity
  std::vector<LayerPrecision> choices;      // operands outside `operands` are fp32 there
  std::vector<Operand> operands;            // what this slot decides
  std::vector<std::vector<double>> losses;  // for each choice and layer
  std::string locked;                       // the reason, if it has one choice only
};

struct Choices {
  Problem problem;
  std::vector<Slot> slots;  // one for each group
  std::vector<Kind> kinds;  // one for each limit; the first may be unlimited
  double weights = 0;       // of all layers
};

Choices build(const Sensitivity& sensitivity, const Budget& budget, const AllocationOptions& options);

PrecisionPlan plan_of(const Sensitivity& sensitivity, const Choices& choices, const std::vector<int>& picks,
                      const std::string& why);

// In the user's unit: bits a weight, bytes, seconds, bit operations.
double amount(const Choices& choices, Kind kind, int64_t units);
int64_t units(const Choices& choices, Kind kind, double amount);  // rounded down

}  // namespace hpqf::plan::knapsack
