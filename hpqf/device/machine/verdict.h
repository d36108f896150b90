// What pays on a machine: for each format one sentence, from instruction sets and, where there is one, a calibration.
#pragma once
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/device/device.h"
#include "hpqf/device/machine/calibration.h"

namespace hpqf::device::machine {

enum class Worth : uint8_t {
  baseline,  // fp32
  pays,      // measured: at least 5 % faster
  even,      // measured: within 5 %
  slower,    // measured
  emulated,  // the numbers of the format without its speed
  unknown,   // could be native here, not measured
};
HPQF_API const char* to_string(Worth worth);

struct Verdict {
  std::string format;
  Worth worth = Worth::unknown;
  double best_ratio = 0;  // of the layers measured, fp32's time over this format's; 0 without
  std::string text;
};

// fp32 and every other format of HPQF, in the order of its table.
HPQF_API std::vector<Verdict> what_pays(const CpuFeatures& cpu, const Calibration* calibration);

}  // namespace hpqf::device::machine
