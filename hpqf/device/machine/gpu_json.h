// GPU reports as JSON: what a library said, whole. For .cc files only.
#pragma once
#include <vector>

#include "hpqf/device/machine/gpu.h"
#include "hpqf/device/machine/json_fields.h"

namespace hpqf::device::machine {

Json gpu_json(const std::vector<GpuReport>& reports);
std::vector<GpuReport> read_gpu_json(const Json& json);  // throws nlohmann's exceptions

}  // namespace hpqf::device::machine
