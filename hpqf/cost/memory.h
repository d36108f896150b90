// Where the memory of a training step goes.
#pragma once
#include <optional>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/cost/workload.h"
#include "hpqf/formats/block_format.h"
#include "hpqf/plan/plan.h"

namespace hpqf::cost {

// Bytes of one element, the scales of its block included: int8[1x256] takes 1 + 4/256. Scales per tensor or per row
// count as nothing; their number does not grow with the tensor.
HPQF_API double bytes_per_element(const BlockFormat& format);

// What is kept for one parameter. A format that is left out is not stored.
struct StateFormats {
  std::optional<BlockFormat> compute;  // low-precision copy of the weight
  std::optional<BlockFormat> master = BlockFormat{};
  std::optional<BlockFormat> gradient = BlockFormat{};
  std::optional<BlockFormat> state = BlockFormat{};
  int states = 2;  // tensors of optimizer state: Adam 2, SGD with momentum 1, SGD 0
};
HPQF_API double bytes_per_parameter(const StateFormats& formats);
HPQF_API int optimizer_states(std::string_view optimizer);  // adam, adamw, momentum, sgd; Error otherwise

struct Memory {
  double parameters = 0, gradients = 0, states = 0, activations = 0;  // bytes
  double total() const { return parameters + gradients + states + activations; }
};
// On each device, everything kept on each of them. Activations are those kept for the backward pass, in the format the
// layer before them computes in (activation_bytes), or in `saved` of the plan where that is smaller.
HPQF_API Memory training_memory(const Workload& work, const PrecisionPlan& plan, double batch, int states,
                                const DeviceRates* device = nullptr);

// Bytes of an activation behind a product in `format`: 4 behind fp32 and tf32, else 2, as torch keeps them; formats of
// 8 bits and fewer are made from 16-bit activations where they are needed.
HPQF_API double activation_bytes(Format format);

}  // namespace hpqf::cost
