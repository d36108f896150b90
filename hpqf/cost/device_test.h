// A device with round figures, so that tests can be computed by hand.
#pragma once
#include "hpqf/cost/device_rates.h"

namespace hpqf::cost {

// fp32 1 TFLOP/s, tf32 4, bf16 8, int8 16, 100 GB/s; 1 us a launch; links of 10 GB/s.
inline DeviceRates toy_device() {
  const auto figure = [](double value) { return Figure{value, Basis::quoted, "made up"}; };
  DeviceRates d{.id = "toy", .name = "Toy"};
  for (const auto& [format, tera] :
       {std::pair{Format::fp32, 1.0}, {Format::tf32, 4.0}, {Format::bf16, 8.0}, {Format::int8, 16.0}})
    d.formats.push_back({format, figure(tera * 1e12), tera * 1e12});
  d.bandwidth = figure(100e9);
  d.bandwidth_achievable = figure(1);
  d.memory = figure(16e9);
  d.watts = figure(200);
  d.link = figure(10e9);
  d.launch = figure(1e-6);
  return d;
}

}  // namespace hpqf::cost
