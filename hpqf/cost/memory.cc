#include "hpqf/cost/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpqf/base/error.h"
#include "hpqf/cost/traffic.h"

namespace hpqf::cost {

double bytes_per_element(const BlockFormat& format) {
  const double code = formats::storage_bits(format.format) / 8.0;
  return format.shape == formats::BlockShape::vector ? code + 4.0 / format.block : code;
}

double bytes_per_parameter(const StateFormats& f) {
  const auto bytes = [](const std::optional<BlockFormat>& format) { return format ? bytes_per_element(*format) : 0; };
  return bytes(f.compute) + bytes(f.master) + bytes(f.gradient) + f.states * bytes(f.state);
}

int optimizer_states(std::string_view optimizer) {
  if (optimizer == "adam" || optimizer == "adamw") return 2;
  if (optimizer == "momentum") return 1;
  if (optimizer == "sgd") return 0;
  throw Error(fmt::format("optimizer '{}'", optimizer), "adam, adamw, momentum, sgd", "take one of these");
}

Memory training_memory(const Workload& work, const PrecisionPlan& plan, double batch, int states,
                       const DeviceRates* device) {
  Memory memory;
  double state_bytes = 0;
  for (const PlannedOp& op : planned(work, plan, device)) {
    memory.parameters += op.op->parameters * bytes_per_element(op.precision.master);
    state_bytes += op.op->parameters * states * bytes_per_element(op.precision.state);
    // fp32 in `saved` says nothing: a bf16 layer keeps its bf16 input as it is.
    const double saved = op.precision.saved.format == Format::fp32
                             ? op.activation_bytes
                             : std::min(op.activation_bytes, bytes_per_element(op.precision.saved));
    memory.activations += batch * op.op->saved * saved;
  }
  const double tied = work.tied_parameters;
  memory.parameters -= tied * 4;
  memory.gradients = work.parameters() * 4;
  memory.states = state_bytes - tied * states * 4;
  return memory;
}

double activation_bytes(Format format) { return format == Format::fp32 || format == Format::tf32 ? 4 : 2; }

}  // namespace hpqf::cost
