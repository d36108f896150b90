#include "hpqf/cost/energy.h"

#include <fmt/format.h>

#include "hpqf/base/error.h"

namespace hpqf::cost {

std::optional<Energy> energy(double watts, double device_hours, const EnergyOptions& o) {
  if (!(o.utilisation > 0 && o.utilisation <= 1) || !(o.host_factor >= 1) || !(o.pue >= 1) ||
      (o.co2_grams && !(*o.co2_grams >= 0)))
    throw Error(fmt::format("energy at utilisation {}, host factor {}, PUE {}", o.utilisation, o.host_factor, o.pue),
                "utilisation above 0 and at most 1, both factors at least 1, CO2 not negative", "correct the option");
  if (!(watts > 0)) return std::nullopt;
  Energy result;
  result.kwh = watts * o.utilisation * o.host_factor * o.pue * device_hours / 1000;
  if (o.co2_grams) result.co2_kg = result.kwh * *o.co2_grams / 1000;
  return result;
}

std::vector<Assumption> energy_assumptions(const Figure& watts, const EnergyOptions& o) {
  if (!(watts.value > 0)) return {{Basis::assumed, "power of the device unknown: no energy is given"}};
  std::vector<Assumption> list{
      {Basis::modelled,
       fmt::format("energy is an estimate: {:.0f} W a device ({}, {}) x {:.2f} utilisation x {:.2f} for "
                   "the host (quoted: MLPerf Training v4.1 logs of 8-GPU nodes) x {:.2f} PUE (assumed)",
                   watts.value, name(watts.basis), watts.source, o.utilisation, o.host_factor, o.pue)}};
  if (o.co2_grams) list.push_back({Basis::given, fmt::format("{:.0f} g CO2 a kWh", *o.co2_grams)});
  return list;
}

}  // namespace hpqf::cost
