// The plan behind --precision auto: chosen by what was measured on this machine, layer by layer.
//
// The first step runs in fp32 and shows what each layer computes. Then each kind of problem is timed once in the
// formats that this machine has instructions for, and a layer takes the fastest if it is at least 5 % faster than fp32.
// Quality bounds what may be chosen. With a measured sensitivity (the trainers measure it on a few batches before the
// first step): the predicted change of the loss, summed over the layers, stays within a limit, and the time is the
// least for which that holds. Without: the first layer (unless an embedding feeds it) and the last one, in the order in
// which the model defines them, keep at least 12 bits, for they see the data and the loss unsmoothed.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/plan.h"
#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine {

class Runtime;

// Nats of predicted change of the loss that "auto" may spend: 1 % of the loss of a language model at 1 nat a byte, and
// below what two seeds differ by in the small models of docs/benchmarks.md.
inline constexpr double kAutoLoss = 0.01;

// fp32 until it is settled. Layers in `sensitive` stay fp32.
HPQF_API PrecisionPlan auto_plan(const std::vector<std::string>& sensitive = {});
// What a user means by a precision in words: "auto", or a format for all layers but the sensitive ones.
HPQF_API PrecisionPlan requested_plan(const std::string& precision, const std::vector<std::string>& sensitive);
HPQF_API bool unsettled(const PrecisionPlan& plan);

// Between steps: replaces an unsettled plan once the layers' shapes were seen. Returns what was chosen, in a sentence;
// "" when there was nothing to do.
HPQF_API std::string settle(Runtime& runtime, const plan::Sensitivity* sensitivity = nullptr,
                            double most_loss = kAutoLoss);

}  // namespace hpqf::engine
