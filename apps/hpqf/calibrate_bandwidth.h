// Bandwidths: memory, the quantiser, an optimizer pass, the loopback device.
#pragma once
#include "hpqf/device/machine/calibration.h"

namespace hpqf::app {

device::machine::BandwidthFigure copy_bandwidth(int runs);       // torch's copy, 64 MiB
device::machine::BandwidthFigure quantise_bandwidth(int runs);   // fp32 to int8 and back, 64 MiB
device::machine::BandwidthFigure optimizer_bandwidth(int runs);  // torch's fused AdamW, 4 M parameters
// One TCP stream through 127.0.0.1, not an all-reduce. Error-free: no runs when sockets are not allowed.
device::machine::BandwidthFigure loopback_bandwidth(int runs);

}  // namespace hpqf::app
