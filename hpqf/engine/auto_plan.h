// The plan behind --precision auto: chosen by what was measured on this machine, layer by layer.
//
// The first step runs in fp32 and shows what each layer computes. Then each kind of problem is timed once in the
// formats that this machine has instructions for, and a layer takes the fastest if it is at least 5 % faster than fp32.
// Quality bounds what may be chosen: the first layer (unless an embedding feeds it) and the last one, in the order in
// which the model defines them, keep at least 12 bits, for they see the data and the loss unsmoothed.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/plan/plan.h"

namespace hpqf::engine {

class Runtime;

// fp32 until it is settled. Layers in `sensitive` stay fp32.
HPQF_API PrecisionPlan auto_plan(const std::vector<std::string>& sensitive = {});
// What a user means by a precision in words: "auto", or a format for all layers but the sensitive ones.
HPQF_API PrecisionPlan requested_plan(const std::string& precision, const std::vector<std::string>& sensitive);
HPQF_API bool unsettled(const PrecisionPlan& plan);

// Between steps: replaces an unsettled plan once the layers' shapes were seen. Returns what was chosen, in a sentence;
// "" when there was nothing to do.
HPQF_API std::string settle(Runtime& runtime);

}  // namespace hpqf::engine
