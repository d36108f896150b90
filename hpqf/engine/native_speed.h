// Is torch's own low-precision GEMM worth calling on this CPU? Measured, not believed.
#pragma once
#include <string>

#include "hpqf/base/export.h"
#include "hpqf/formats/format.h"

namespace hpqf::engine {

// "" when torch's GEMM in `format` (bf16, fp16) beats fp32 on this CPU; else why it is not used. CPUs without the
// instructions are refused unmeasured; others are timed once per process (512x512x512, about 50 ms) with the threads
// torch has then.
HPQF_API std::string cpu_slow_reason(Format format);

}  // namespace hpqf::engine
