// What cannot be told from a module's type and must be guessed from the name of its class.
#pragma once
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::engine {

// Does a leaf without parameters and of this class compute a table of angles (LlamaRotaryEmbedding)? In bf16 these are
// off by radians at position 2048. Learned positions are Embeddings.
HPQF_API bool computes_positions(std::string_view class_name);

}  // namespace hpqf::engine
