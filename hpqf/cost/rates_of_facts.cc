#include "hpqf/cost/rates_of_facts.h"

#include <fmt/format.h>

#include <optional>

#include "hpqf/base/error.h"
#include "hpqf/device/resolve.h"

namespace hpqf::cost {
namespace {

using device::DeviceFacts;
using device::Fact;

Basis basis_of(const Fact& fact) {
  if (fact.user) return Basis::given;
  // Somebody else's measurement is a quotation here.
  return fact.source->trust == device::Trust::derived ? Basis::modelled : Basis::quoted;
}

std::optional<Figure> figure(const DeviceFacts& facts, const char* key, double unit) {
  const Fact* fact = facts.find(key);
  const auto number = facts.number(key);
  if (!fact || !number) return std::nullopt;
  return Figure{*number * unit, basis_of(*fact), fact->source->title};
}

FormatRate format_rate(Format format, const device::Rate& rate, const DeviceFacts& facts) {
  Basis basis = Basis::modelled;  // a sheet's peak times what such peaks are reached to
  if (rate.source == device::RateSource::calibrated) basis = Basis::measured;
  if (rate.source == device::RateSource::measured) basis = Basis::quoted;
  const auto peak = facts.number(fmt::format("peak.{}.dense", formats::name(format)));
  return {format, {rate.tera * 1e12, basis, rate.basis}, peak.value_or(0) * 1e12};
}

Figure bandwidth_share(const DeviceFacts& facts, double bandwidth) {
  for (const char* key : {"calibrated.copy_gbs", "calibrated.read_gbs"}) {
    const auto measured = figure(facts, key, 1e9);
    if (measured && measured->value <= bandwidth)
      return {measured->value / bandwidth, measured->basis, measured->source};
  }
  return {0.85, Basis::assumed, "A100 1328 of 1555 GB/s in FlagPerf"};
}

Figure link(const DeviceFacts& facts, int devices) {
  const double system = facts.number("link.system.devices").value_or(8);
  if (devices > system) {
    const auto card = figure(facts, "link.network.nic_gbps", 1e9 / 8);
    if (!card) return {50e9, Basis::assumed, "one network card of 400 Gb/s a device"};
    Figure all = *card;
    all.value *= facts.number("link.network.nic_per_device").value_or(1);
    return all;
  }
  if (auto f = figure(facts, "calibrated.allreduce_gbs", 1e9)) return *f;
  if (auto f = figure(facts, "link.device.one_way_gbs", 1e9)) return *f;
  if (auto f = figure(facts, "link.host.one_way_gbs", 1e9)) return *f;
  return {};
}

}  // namespace

DeviceRates rates_of(const DeviceFacts& facts, const device::AchievableFactors& factors, int devices) {
  DeviceRates d;
  d.id = facts.id();
  d.name = facts.name();
  for (const formats::FormatInfo& format : formats::all_formats()) {
    if (arithmetic_of(format.format) != format.format) continue;
    if (format.format != Format::fp32 && device::resolve(format.format, facts, factors).kind == device::Kind::emulated)
      continue;
    if (const auto rate = device::expected_rate(format.format, facts, factors); rate && rate->tera > 0)
      d.formats.push_back(format_rate(format.format, *rate, facts));
  }
  const auto bandwidth = figure(facts, "memory.bandwidth_gbs", 1e9);
  if (!d.find(Format::fp32) || !bandwidth)
    throw Error(fmt::format("the cost of training on {}", d.name), "a device whose fp32 rate and bandwidth are known",
                fmt::format("add peak.fp32.dense and memory.bandwidth_gbs to a device file of your own for {}", d.id));
  d.bandwidth = *bandwidth;
  d.bandwidth_achievable = bandwidth_share(facts, bandwidth->value);
  for (const char* key : {"memory.usable_gb", "memory.capacity_gb"})
    if (d.memory.value == 0)
      if (const auto f = figure(facts, key, 1e9)) d.memory = *f;
  if (const auto f = figure(facts, "power.tdp_w", 1)) d.watts = *f;
  d.link = link(facts, devices);
  d.launch = figure(facts, "calibrated.launch_us", 1e-6)
                 .value_or(Figure{5e-6, Basis::assumed, "nobody measured it on this device"});
  return d;
}

}  // namespace hpqf::cost
