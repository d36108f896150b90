// Measures this machine within a time: products and layers in each format, memory, optimizer, loopback, noise.
#pragma once
#include <string>

#include "hpqf/device/machine/calibration.h"
#include "hpqf/device/machine/machine.h"

namespace hpqf::app {

struct CalibrateOptions {
  bool quick = false, quiet = false;
};

device::machine::CalibrationIdentity calibration_identity(const device::machine::MachineFacts& facts);

// With the threads torch has now. At most 60 s, 20 s when quick: what does not fit is left out by name. The rates of
// layers come from, and go to, the cache of engine/rates.h, so that `auto` need not measure them again.
device::machine::Calibration calibrate(const device::machine::MachineFacts& facts, const CalibrateOptions& options);

}  // namespace hpqf::app
