// What a module is by its class name: decides which rules hold for the layer.
#pragma once
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/plan/role.h"

namespace hpqf::engine {

// "torch::nn::Conv2dImpl", "Conv2d", "LlamaRMSNorm" -> its kind. Unknown classes are `other`: their products follow the
// plan.
HPQF_API plan::LayerKind kind_of(std::string_view class_name);

}  // namespace hpqf::engine
