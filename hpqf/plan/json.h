// The strict JSON reader under the names this room and those below it know it by. For .cc files only.
#pragma once
#include "hpqf/base/json.h"

namespace hpqf::plan {
using base::Json;
using base::json_quote;
using base::JsonObject;
using base::parse_json;
}  // namespace hpqf::plan
