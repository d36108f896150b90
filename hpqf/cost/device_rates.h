// What the step-time model needs to know about a device. It is filled from the device database, from a measurement on
// this machine, or by hand in a test; this room holds no figures of devices.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/figure.h"
#include "hpqf/formats/format.h"

namespace hpqf::cost {

struct FormatRate {
  Format format = Format::fp32;
  Figure rate;      // operations per second that large dense matrix products reach, 2 for a multiply-add
  double peak = 0;  // operations per second of the sheet; 0: unknown
};

// Formats without arithmetic of their own compute in that of a near relative: fp8_e5m2 as fp8_e4m3, int7 as int8, int12
// as int16.
HPQF_API Format arithmetic_of(Format format);

struct HPQF_API DeviceRates {
  std::string id, name;
  std::vector<FormatRate> formats;
  Figure bandwidth;             // bytes per second of its memory
  Figure bandwidth_achievable;  // 0 to 1
  Figure memory;                // bytes
  Figure watts;                 // board or socket power; 0: unknown
  Figure link;                  // bytes per second to its peers, one direction; 0: unknown
  Figure launch;                // seconds from one kernel to the next
  bool casts_in_rates = false;  // the rates were measured with the rounding of operands in them

  double memory_rate() const { return bandwidth.value * bandwidth_achievable.value; }
  const FormatRate* find(Format format) const;  // null: no arithmetic in this format

  // The arithmetic that a product of operands in `a` and `b` runs in: that of the wider operand. A format the device
  // cannot compute in is emulated: rounded to, and computed in fp32.
  struct Arithmetic {
    const FormatRate* rate = nullptr;  // never null when the device knows fp32
    bool emulated = false;
  };
  Arithmetic arithmetic(Format a, Format b) const;

  // Error unless fp32 and the bandwidth are known and all figures are positive and shares at most 1.
  void check() const;
};

// How sure a modelled time is: the relative error to expect, by the basis of the rates used. 10 % for rates measured
// here, 15 % for rates that others measured on such a device, 25 % for those derived from a sheet. The first two are
// the accuracy that simulators of training report (SimuMax: -13.5 to +4.8 % of step times); the last one is our
// allowance.
HPQF_API double relative_error(Basis basis);

}  // namespace hpqf::cost
