// What this machine reaches in large matrix products, measured: the yardstick of the profiler.
#pragma once
#include "hpqf/base/export.h"
#include "hpqf/observe/profile/rate_table.h"

namespace hpqf::engine {

// fp32 and every format that runs natively here, from one linear layer of 1024 x 1024 x 1024, forward and backward,
// with the threads torch has (rates.h: kept by machine, some 100 ms a format the first time); what would be emulated is
// left out. Bandwidth from copies of 64 MiB. These are rates that programs reach, not those of the sheet, and a
// product of a luckier shape may exceed them.
HPQF_API observe::RateTable measure_peaks();

}  // namespace hpqf::engine
