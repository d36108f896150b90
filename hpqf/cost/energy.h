// Energy of a run, from the power of its devices: an estimate wherever no counter was read.
#pragma once
#include <optional>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/figure.h"

namespace hpqf::cost {

struct EnergyOptions {
  double utilisation = 1;  // of the board's rated power, over the run
  // At the wall of a node, over its devices: processors, memory, fans, switches. 1.26 from MLPerf Training v4.1 logs of
  // 8 nodes of 8 H100 with 7.0 to 7.1 kW each.
  double host_factor = 1.26;
  double pue = 1.2;                 // of the building
  std::optional<double> co2_grams;  // per kWh; only the user knows his grid
};

struct Energy {
  double kwh = 0;
  std::optional<double> co2_kg;
};
// Nothing when the power of the device is unknown (watts 0). Error for impossible options.
HPQF_API std::optional<Energy> energy(double watts, double device_hours, const EnergyOptions& options);
HPQF_API std::vector<Assumption> energy_assumptions(const Figure& watts, const EnergyOptions& options);

}  // namespace hpqf::cost
