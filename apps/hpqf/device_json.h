// Facts, rates and answers about devices as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "hpqf/device/database.h"
#include "hpqf/device/resolve.h"

namespace hpqf::app {

using DeviceJson = nlohmann::ordered_json;

DeviceJson to_json(const device::Value& value);
DeviceJson to_json(const device::Fact& fact, const device::Field* field);  // value, unit, group, where it is from
DeviceJson to_json(const device::Resolution& resolution);

}  // namespace hpqf::app
