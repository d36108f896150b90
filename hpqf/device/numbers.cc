#include "hpqf/device/numbers.h"

#include <fmt/format.h>

namespace hpqf::device {
namespace {

constexpr PeakField kPeakFields[] = {
    {"fp64", false}, {"fp64_tensor", true},  {"fp32", false},        {"fp32_tensor", true},  {"tf32", true},
    {"fp16", true},  {"fp16_fp16acc", true}, {"bf16", true},         {"fp8_e4m3", true},     {"fp8_e5m2", true},
    {"fp6", true},   {"mxfp4", true},        {"nvfp4", true},        {"int16", true},        {"int8", true},
    {"int4", true},  {"int1", true},         {"fp16_vector", false}, {"bf16_vector", false},
};

}  // namespace

std::span<const PeakField> peak_fields() { return kPeakFields; }

std::string peak_key(std::string_view name) { return fmt::format("peak.{}.dense", name); }

std::optional<double> peak_clock(const DeviceFacts& device, const PeakField& field) {
  if (const auto own = device.number(fmt::format("peak.{}.clock", field.name))) return own;
  if (const auto tensor = device.number("units.tensor_clock_mhz"); tensor && field.matrix) return tensor;
  return device.number("units.boost_clock_mhz");
}

std::optional<double> peak_from_units(const DeviceFacts& device, const PeakField& field) {
  const auto units = device.number("units.count");
  const auto clock = peak_clock(device, field);
  const auto rate = device.number(fmt::format("rate.{}", field.name));
  if (!units || !clock || !rate) return std::nullopt;
  return *units * *clock * 1e6 * *rate / 1e12;
}

}  // namespace hpqf::device
