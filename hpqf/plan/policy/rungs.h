// The ladder of formats: where each goes when it goes one up.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/formats/block_format.h"

namespace hpqf::plan {

using Rungs = std::map<std::string, std::string>;  // names of formats

// int4 -> int8 -> int12 -> bf16 -> fp32; int7 -> int8; fp8 -> bf16; int16, fp16 and tf32 -> fp32.
HPQF_API Rungs default_rungs();
// With the default block scales of the format above; none at the top.
HPQF_API std::optional<BlockFormat> rung_above(const Rungs& rungs, const BlockFormat& format);
HPQF_API void check(const Rungs& rungs);  // Error: no format, or a way that goes round in circles

}  // namespace hpqf::plan
