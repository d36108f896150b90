// A published claim, worked through with every assumption in the open: "training a model of 100 billion parameters
// falls from $1.2 M to $480 k, in 40 % less time; the conversion pays beyond 1,000 GPU-hours".
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/break_even.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/cost/price.h"

namespace hpqf::cost {

struct ExampleLine {
  std::string what;
  double value = 0;
  std::string unit;
  Basis basis = Basis::modelled;
  std::string how;  // formula or source
};

struct ExampleTransition {
  std::string device, from, to;
  double ratio = 0;      // modelled time before over time after
  bool reaches = false;  // the ratio of money in the claim
};

struct Example {
  std::vector<ExampleLine> lines;
  std::vector<ExampleTransition> transitions;
  std::vector<std::string> verdict;  // plain sentences
};

struct Claim {
  double before = 1.2e6, after = 480e3;  // money
  double less_time = 0.4;                // share of the calendar time
  double break_even_gpu_hours = 1000;
};

// `device` trains; transitions are modelled on it and on `others`. Error when the device lacks a rate that the model
// needs.
HPQF_API Example gpt_100b_example(const DeviceRates& device, const std::vector<DeviceRates>& others, const Offer& offer,
                                  const Conversion& conversion, const Claim& claim = {});

}  // namespace hpqf::cost
