#include "hpqf/cost/device_rates.h"

#include <fmt/format.h>

#include <cmath>

#include "hpqf/base/error.h"

namespace hpqf::cost {
namespace {

void positive(const DeviceRates& device, const char* what, double value, double most = INFINITY) {
  if (value > 0 && value <= most && std::isfinite(value)) return;
  throw Error(fmt::format("device {}: {} {}", device.id, what, value),
              std::isfinite(most) ? fmt::format("a number above 0, at most {}", most) : "a finite number above 0",
              "correct the facts of the device");
}

}  // namespace

Format arithmetic_of(Format format) {
  switch (format) {
    case Format::fp8_e5m2:
      return Format::fp8_e4m3;
    case Format::int7:
      return Format::int8;
    case Format::int12:
      return Format::int16;
    default:
      return format;
  }
}

const FormatRate* DeviceRates::find(Format format) const {
  for (const FormatRate& rate : formats)
    if (rate.format == format) return &rate;
  return nullptr;
}

DeviceRates::Arithmetic DeviceRates::arithmetic(Format a, Format b) const {
  const FormatRate* fp32 = find(Format::fp32);
  const FormatRate* of_a = find(arithmetic_of(a));
  const FormatRate* of_b = find(arithmetic_of(b));
  const bool low = a != Format::fp32 && b != Format::fp32;
  if (!low) return {fp32, false};
  if (!of_a || !of_b) return {fp32, true};
  return {of_a->rate.value <= of_b->rate.value ? of_a : of_b, false};
}

void DeviceRates::check() const {
  if (!find(Format::fp32))
    throw Error(fmt::format("device {} without a rate for fp32", id), "a device whose fp32 rate is known",
                "add the figure to the device's facts");
  for (const FormatRate& rate : formats) positive(*this, formats::name(rate.format), rate.rate.value);
  positive(*this, "memory bandwidth", bandwidth.value);
  positive(*this, "achievable share of the bandwidth", bandwidth_achievable.value, 1);
}

double relative_error(Basis basis) {
  switch (basis) {
    case Basis::measured:
      return 0.10;
    case Basis::quoted:
      return 0.15;
    default:
      return 0.25;
  }
}

}  // namespace hpqf::cost
