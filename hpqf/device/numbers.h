// The formats of the database's throughput fields, and how their peaks follow from units, clock and rate.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"
#include "hpqf/device/facts.h"
#include "hpqf/formats/format.h"

namespace hpqf::device {

// The database knows more ways to compute than HPQF has formats: fp64, matrix units on fp32, fp4, accumulation in fp16.
struct PeakField {
  const char* name;  // in "peak.<name>.dense" and "rate.<name>"
  bool matrix;       // on matrix units, so at the tensor clock where that is another one
};
HPQF_API std::span<const PeakField> peak_fields();

HPQF_API std::string peak_key(std::string_view name);  // "peak.<name>.dense"

// MHz at which the quoted peak of a field holds: its own, else the tensor clock, else the boost clock.
HPQF_API std::optional<double> peak_clock(const DeviceFacts& device, const PeakField& field);

// Units x clock x rate in TFLOP/s or TOP/s; nullopt where one of the three is unknown.
HPQF_API std::optional<double> peak_from_units(const DeviceFacts& device, const PeakField& field);

}  // namespace hpqf::device
