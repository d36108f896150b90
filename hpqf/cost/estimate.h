// A whole training, estimated: time, energy, money, memory; and whether changing to it from another precision pays.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/break_even.h"
#include "hpqf/cost/energy.h"
#include "hpqf/cost/memory.h"
#include "hpqf/cost/price.h"
#include "hpqf/cost/step_time.h"

namespace hpqf::cost {

struct Training {
  double samples = 0;  // seen in the whole training, repetitions counted
  StepOptions step;
  EnergyOptions energy;
};

struct Estimate {
  std::string device, precision;
  StepTime step;
  Memory memory;       // on each device
  double steps = 0;    // rounded up
  double seconds = 0;  // of the whole training
  double device_hours = 0;
  std::optional<Energy> energy;
  Band money;                     // at the lowest, median and highest price; zeros without one
  std::string currency;           // "" without a price
  double samples_per_second = 0;  // all devices together
};

// `offer` null: without money. Error for no samples, and what step_time() refuses.
HPQF_API Estimate estimate(const Workload& work, const PrecisionPlan& plan, std::string precision,
                           const DeviceRates& device, const Offer* offer, const Training& training);

// The change from `from` to `to` on one device.
struct Change {
  Band ratio;                           // time before over time after
  double saved = 0;                     // share of the money (and of the time): 1 - 1 / ratio
  double saved_money = 0;               // at the median price
  std::optional<BreakEven> break_even;  // nothing without a price
};
HPQF_API Change change(const Estimate& from, const Estimate& to, const Offer* offer, const Conversion& conversion);

}  // namespace hpqf::cost
