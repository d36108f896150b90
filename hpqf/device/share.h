// A device of which only part can be used: a partition of it, or all of it under a power limit.
#pragma once
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/device/facts.h"

namespace hpqf::device {

// One instance of a partition profile ("1g.10gb" of MIG). Units and peaks shrink with the compute slices, capacity and
// bandwidth with the profile's memory. What was measured or priced for the whole device, its power and its links are
// left out: they are unknown of the part. Error when the device has no such profile, with the names it has.
HPQF_API DeviceFacts partition(const DeviceFacts& device, std::string_view profile);

// The device under a power limit below its TDP. Clocks and peaks shrink in proportion to power: a lower bound, since
// clocks fall more slowly than power does. Measurements at full power are left out. Error when the limit is not
// positive, is below power.min_w, or when the TDP is unknown; at or above the TDP the device is returned as it is.
HPQF_API DeviceFacts power_capped(const DeviceFacts& device, double watts);

}  // namespace hpqf::device
