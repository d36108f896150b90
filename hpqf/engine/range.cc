#include "hpqf/engine/range.h"

#include <algorithm>
#include <bit>

#include "hpqf/engine/layer.h"

namespace hpqf::engine {
namespace {

void raise(std::atomic<int32_t>& largest, float value) {
  const int32_t bits = std::bit_cast<int32_t>(value);
  int32_t seen = largest.load(std::memory_order_relaxed);
  while (seen < bits && !largest.compare_exchange_weak(seen, bits, std::memory_order_relaxed)) {
  }
}

}  // namespace

bool range_moves(const BlockFormat& format) {
  return format.shape == formats::BlockShape::none && formats::info(format.format).exponent_bits < 8;
}

kernels::RoundStats round_in_range(const float* in, float* out, const kernels::BlockLayout& layout,
                                   const BlockFormat& format, RangeSite& site, bool note) {
  const int planned = site.exponent.load(std::memory_order_relaxed);
  const bool first = planned == RangeSite::kUnknown;
  kernels::RoundStats stats =
      kernels::quantize_dequantize(in, out, layout, format, {.exponent = first ? 0 : planned, .amax = true});
  const int own = plan::range_exponent(format.format, stats.amax);
  if (first && note) {
    int unknown = RangeSite::kUnknown;
    site.exponent.compare_exchange_strong(unknown, own, std::memory_order_relaxed);
  }
  if (first ? own != 0 : stats.overflow > 0 && own != planned) {
    const kernels::RoundStats again = kernels::quantize_dequantize(in, out, layout, format, {.exponent = own});
    stats.overflow = again.overflow;
    if (!first && note) site.recasts.fetch_add(1, std::memory_order_relaxed);
  }
  if (!note) return stats;
  raise(site.amax_bits, stats.amax);
  site.elements.fetch_add(layout.numel(), std::memory_order_relaxed);
  site.clipped.fetch_add(stats.overflow, std::memory_order_relaxed);
  return stats;
}

namespace {

Format format_of(const LayerPrecision& p, plan::Role role) {
  if (role == plan::Role::weight) return p.weight.format;
  if (role == plan::Role::input) return p.input.format;
  return p.dgrad.format == Format::fp32 ? p.wgrad.format : p.dgrad.format;
}

}  // namespace

std::vector<plan::RangeObservation> take_ranges(RuntimeState& state) {
  std::vector<plan::RangeObservation> seen;
  for (Layer& layer : state.layers) {
    for (const plan::Role role : RangeSites::kRoles) {
      RangeSite& site = layer.ranges.at(role);
      const int64_t elements = site.elements.exchange(0);
      if (elements == 0) continue;
      seen.push_back({.layer = layer.name,
                      .role = role,
                      .format = format_of(layer.precision(), role),
                      .amax = std::bit_cast<float>(site.amax_bits.exchange(0)),
                      .elements = elements,
                      .clipped = site.clipped.exchange(0),
                      .recasts = site.recasts.exchange(0),
                      .exponent = site.exponent.load()});
    }
  }
  return seen;
}

void set_ranges(RuntimeState& state, const plan::RangeState& ranges) {
  for (Layer& layer : state.layers) {
    for (const plan::Role role : RangeSites::kRoles) {
      const auto site = ranges.sites.find({layer.name, role});
      if (site != ranges.sites.end()) layer.ranges.at(role).exponent = site->second.exponent;
    }
  }
}

}  // namespace hpqf::engine
