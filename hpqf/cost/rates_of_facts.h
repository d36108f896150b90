// The figures of the step-time model, out of the device database.
#pragma once
#include "hpqf/base/export.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/device/achievable.h"
#include "hpqf/device/facts.h"

namespace hpqf::cost {

// Rates are those device::expected_rate() expects, of every format the device computes in. `devices` decides which link
// counts: within one system the device's own, or that to the host where it has none; beyond, the network card of each
// device. Where a fact is missing a default is taken and says so: 85 % of the bandwidth reached, 5 us from one kernel
// to the next, 50 GB/s (400 Gb/s) of network a device. Error when fp32 or the bandwidth is not known.
HPQF_API DeviceRates rates_of(const device::DeviceFacts& facts, const device::AchievableFactors& factors,
                              int devices = 1);

}  // namespace hpqf::cost
