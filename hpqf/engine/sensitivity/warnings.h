// What a reader of a sensitivity should know before trusting it.
#pragma once
#include <string>
#include <vector>

#include "hpqf/plan/sensitivity.h"

namespace hpqf::engine::sensitivity {

// `unreached`: layers that ran and whose output no gradient reached.
std::vector<std::string> warnings_of(const plan::Sensitivity& sensitivity, bool asked_sampled,
                                     const std::vector<std::string>& unreached);

}  // namespace hpqf::engine::sensitivity
