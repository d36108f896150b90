#include "hpqf/device/share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "hpqf/base/text.h"
#include "hpqf/device/numbers.h"

namespace hpqf::device {
namespace {

std::optional<double> entry(const DeviceFacts& device, std::string_view key, std::string_view profile) {
  const Fact* fact = device.find(key);
  const Value* value = fact ? fact->value.at(profile) : nullptr;
  return value && value->kind == Value::Kind::number ? std::optional(value->number) : std::nullopt;
}

class Scaler {
 public:
  Scaler(const DeviceFacts& from, std::string title, std::string name) : to_(from) {
    source_ = std::make_shared<Source>(Source{"share", std::move(title), "", "", Trust::derived});
    Fact renamed{"identity.name", {}, source_, "", false};
    renamed.value.kind = Value::Kind::text;
    renamed.value.text = std::move(name);
    to_.set(std::move(renamed));
  }
  void put(std::string_view key, double value) {
    Fact fact{std::string(key), {}, source_, "", false};
    fact.value.number = value;
    to_.set(std::move(fact));
  }
  void scale(std::string_view key, double by) {
    if (const auto value = to_.number(key)) put(key, *value * by);
  }
  void scale_peaks(double by) {
    for (const PeakField& field : peak_fields()) {
      scale(peak_key(field.name), by);
      scale(fmt::format("peak.{}.sparse", field.name), by);
    }
  }
  // Facts whose key starts with one of the prefixes are unknown of the part.
  void forget(std::initializer_list<std::string_view> prefixes) {
    DeviceFacts kept(to_.id());
    for (const auto& [key, fact] : to_.facts()) {
      bool forgotten = false;
      for (const std::string_view prefix : prefixes) forgotten = forgotten || key.starts_with(prefix);
      if (!forgotten) kept.set(fact);
    }
    to_ = std::move(kept);
  }
  DeviceFacts take() { return std::move(to_); }

 private:
  DeviceFacts to_;
  std::shared_ptr<const Source> source_;
};

}  // namespace

DeviceFacts partition(const DeviceFacts& device, std::string_view profile) {
  const std::vector<std::string> profiles = device.texts("partition.profiles");
  const auto slices = entry(device, "partition.profile_slices", profile),
             memory = entry(device, "partition.profile_memory_gb", profile);
  const auto all_slices = device.number("partition.slices"), units = device.number("units.count"),
             capacity = device.number("memory.capacity_gb");
  if (!slices || !memory || !capacity || (!all_slices && !device.number("partition.units_per_slice")))
    throw Error(fmt::format("partition \"{}\" of {}", profile, device.name()),
                profiles.empty() ? "nothing: no partition profiles of it are known"
                                 : fmt::format("{}", fmt::join(profiles, ", ")),
                profiles.empty() ? "give the whole device" : "take one of these profiles");
  // Slices of all profiles together can be fewer units than the whole device has (7 x 14 of 108 on an A100).
  const auto per_slice = device.number("partition.units_per_slice");
  double share = per_slice && units ? *slices * *per_slice / *units : *slices / all_slices.value_or(*slices);
  if (units) share = std::floor(*units * share) / *units;  // whole units
  const double memory_share = std::min(1.0, *memory / *capacity);
  Scaler scaler(
      device,
      fmt::format("{} of {}: {:.3g} of the units, {:.3g} of the memory", profile, device.name(), share, memory_share),
      fmt::format("{} ({})", device.name(), profile));
  scaler.scale_peaks(share);
  if (units) scaler.put("units.count", std::round(*units * share));  // a whole number up to rounding
  scaler.put("memory.capacity_gb", std::min(*memory, *capacity));    // a profile may be named after rounded GiB
  scaler.scale("memory.bandwidth_gbs", memory_share);
  scaler.forget({"calibrated.", "economics.", "power.", "link.", "partition.", "units.count_full_die", "units.groups",
                 "units.matrix_units", "units.vector_lanes", "memory.usable_gb", "memory.stacks", "memory.bus_bits",
                 "memory.max_gb", "memory.l2_mb", "memory.bandwidth_driver_gbs"});
  return scaler.take();
}

DeviceFacts power_capped(const DeviceFacts& device, double watts) {
  const auto tdp = device.number("power.tdp_w"), least = device.number("power.min_w");
  if (!(watts > 0) || !tdp || (least && watts < *least))
    throw Error(fmt::format("a power limit of {} W on {}", watts, device.name()),
                !tdp ? "a device whose TDP is known" : fmt::format("{} to {} W", least.value_or(1), *tdp),
                !tdp ? "give power.tdp_w in an override file" : "give a limit in this range");
  if (watts >= *tdp) return device;
  const double share = watts / *tdp;
  Scaler scaler(device, fmt::format("{} W of {} W: clocks in proportion, a lower bound", watts, *tdp),
                fmt::format("{} ({} W)", device.name(), watts));
  scaler.scale_peaks(share);
  for (const char* key : {"units.base_clock_mhz", "units.boost_clock_mhz", "units.tensor_clock_mhz"})
    scaler.scale(key, share);
  for (const PeakField& field : peak_fields()) scaler.scale(fmt::format("peak.{}.clock", field.name), share);
  scaler.put("power.max_w", watts);
  scaler.put("power.tdp_w", watts);
  scaler.forget({"calibrated."});
  return scaler.take();
}

}  // namespace hpqf::device
