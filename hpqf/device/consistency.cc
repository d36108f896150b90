#include "hpqf/device/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hpqf/base/text.h"
#include "hpqf/device/numbers.h"

namespace hpqf::device {
namespace {

// Sheets round to two or three digits (989.4, 1979; 121) and boost clocks to 5 or 10 MHz: 2 % covers both, and is far
// from the smallest real mistake seen (a wrong unit count: 160 for 148).
constexpr double kTolerance = 0.02;

// Bandwidths are rounded to one digit (8 TB/s for 8192 GB/s, 2 for 2048).
constexpr double kBandwidthTolerance = 0.025;

bool near(double a, double b, double tolerance = kTolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

void add(std::vector<Breach>& found, const DeviceFacts& device, const char* rule, std::vector<std::string> keys,
         std::string text) {
  found.push_back({device.id(), rule, std::move(keys), std::move(text)});
}

void peak_is_units_times_clock_times_rate(const DeviceFacts& device, std::vector<Breach>& found) {
  for (const PeakField& field : peak_fields()) {
    const std::string key = peak_key(field.name), rate = fmt::format("rate.{}", field.name);
    const auto peak = device.number(key), product = peak_from_units(device, field);
    if (!peak || !product || near(*peak, *product)) continue;
    add(found, device, "units", {key, rate, "units.count"},
        fmt::format("{} is {:.6g}, but {} units x {} MHz x {} op/clock are {:.6g}", key, *peak,
                    *device.number("units.count"), *peak_clock(device, field), *device.number(rate), *product));
  }
}

void sparse_is_twice_dense(const DeviceFacts& device, std::vector<Breach>& found) {
  for (const PeakField& field : peak_fields()) {
    const std::string key = peak_key(field.name), sparse_key = fmt::format("peak.{}.sparse", field.name);
    const auto dense = device.number(key), sparse = device.number(sparse_key);
    if (!sparse) continue;
    if (dense && !near(*sparse, 2 * *dense))
      add(found, device, "sparse", {key, sparse_key},
          fmt::format("{} is {:.6g}, which is not twice {} = {:.6g}", sparse_key, *sparse, key, *dense));
    if (device.flag("support.sparsity_2_4") == false)
      add(found, device, "sparse", {sparse_key, "support.sparsity_2_4"},
          fmt::format("{} is given, but support.sparsity_2_4 is no", sparse_key));
  }
}

void bandwidth_is_bus_times_rate(const DeviceFacts& device, std::vector<Breach>& found) {
  const auto bus = device.number("memory.bus_bits"), rate = device.number("memory.data_rate_gbps"),
             bandwidth = device.number("memory.bandwidth_gbs");
  if (!bus || !rate || !bandwidth || near(*bandwidth, *bus * *rate / 8, kBandwidthTolerance)) return;
  add(found, device, "bandwidth", {"memory.bandwidth_gbs", "memory.bus_bits", "memory.data_rate_gbps"},
      fmt::format("memory.bandwidth_gbs is {:.6g}, but {} bit x {} Gb/s / 8 are {:.6g}", *bandwidth, *bus, *rate,
                  *bus * *rate / 8));
}

// Gb/s of one pin that parts of a kind were ever sold with, with some room above.
struct MemoryKind {
  const char* name;
  double least, most;
};
constexpr MemoryKind kMemoryKinds[] = {
    {"hbm", 0.8, 1.3},     {"hbm2", 1.2, 2.5},   {"hbm2e", 1.9, 3.7},   {"hbm3", 3.0, 6.5},   {"hbm3e", 5.5, 9.9},
    {"hbm4", 6.0, 13.0},   {"gddr5", 3.5, 9.1},  {"gddr5x", 9.0, 12.1}, {"gddr6", 9.9, 20.1}, {"gddr6x", 18.0, 24.1},
    {"gddr7", 24.0, 36.1}, {"lpddr4", 1.6, 4.3}, {"lpddr4x", 1.6, 4.3}, {"lpddr5", 3.2, 6.5}, {"lpddr5x", 5.5, 10.8},
    {"ddr3", 0.8, 2.2},    {"ddr4", 1.6, 3.3},   {"ddr5", 3.2, 9.3},
};

void memory_type_fits_its_rate(const DeviceFacts& device, std::vector<Breach>& found) {
  const auto type = device.text("memory.type");
  const auto rate = device.number("memory.data_rate_gbps");
  if (!type || !rate) return;
  const std::string low = base::lower(*type);
  for (const MemoryKind& kind : kMemoryKinds) {
    if (low != kind.name || (*rate >= kind.least && *rate <= kind.most)) continue;
    add(found, device, "memory-type", {"memory.type", "memory.data_rate_gbps"},
        fmt::format("{} runs at {} to {} Gb/s a pin, not at {}", *type, kind.least, kind.most, *rate));
  }
}

// A GDDR chip has a 32-bit bus (two may share one, in 16-bit mode) and 0.5, 1, 1.5, 2, 3 or 4 GiB.
void capacity_is_whole_chips(const DeviceFacts& device, std::vector<Breach>& found) {
  const auto type = device.text("memory.type");
  const auto capacity = device.number("memory.capacity_gb"), bus = device.number("memory.bus_bits");
  if (!type || !capacity || !bus || *bus < 32 || !base::lower(*type).starts_with("gddr")) return;
  const double per_channel = *capacity / (*bus / 32);
  for (const double chips : {0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0}) {
    if (near(per_channel, chips)) return;
  }
  add(found, device, "capacity", {"memory.capacity_gb", "memory.bus_bits"},
      fmt::format("{} GB on a bus of {} bit are {:.4g} GB a chip, which no {} chip has", *capacity, *bus, per_channel,
                  *type));
}

void capacity_is_whole_stacks(const DeviceFacts& device, std::vector<Breach>& found) {
  const auto stacks = device.number("memory.stacks"), each = device.number("memory.stack_gb"),
             capacity = device.number("memory.capacity_gb");
  if (!stacks || !each || !capacity) return;
  // Some of each stack may be fused off or hold check bits (H200: 141 of 144, B200: 180 of 192), never added.
  if (*capacity <= *stacks * *each * (1 + kTolerance) && *capacity >= 0.9 * *stacks * *each) return;
  add(found, device, "capacity", {"memory.capacity_gb", "memory.stacks", "memory.stack_gb"},
      fmt::format("memory.capacity_gb is {}, but {} stacks of {} GB are {}", *capacity, *stacks, *each,
                  *stacks * *each));
}

struct AtMost {
  const char *small, *large;
};
constexpr AtMost kAtMost[] = {
    {"memory.usable_gb", "memory.capacity_gb"},
    {"memory.capacity_gb", "memory.max_gb"},
    {"memory.bandwidth_driver_gbs", "memory.bandwidth_gbs"},
    {"memory.shared_kb_per_block", "memory.shared_kb_per_unit"},
    {"calibrated.read_gbs", "memory.bandwidth_gbs"},
    {"calibrated.write_gbs", "memory.bandwidth_gbs"},
    {"calibrated.copy_gbs", "memory.bandwidth_gbs"},
    {"units.count", "units.count_full_die"},
    {"units.base_clock_mhz", "units.boost_clock_mhz"},
    {"units.boost_clock_mhz", "units.max_clock_mhz"},
    {"units.max_threads_per_block", "units.max_threads_per_unit"},
    {"power.min_w", "power.tdp_w"},
    {"power.tdp_w", "power.max_w"},
    {"power.idle_w", "power.tdp_w"},
    {"power.throttle_c", "power.shutdown_c"},
    {"partition.full_profile_slices", "partition.slices"},
    {"peak.tf32.dense", "peak.bf16.dense"},  // the wider format is never the faster one
    {"peak.tf32.dense", "peak.fp16.dense"},
};

void part_is_not_more_than_the_whole(const DeviceFacts& device, std::vector<Breach>& found) {
  auto compare = [&](const std::string& small_key, const std::string& large_key) {
    const auto small = device.number(small_key), large = device.number(large_key);
    if (!small || !large || *small <= *large * (1 + kTolerance)) return;
    add(found, device, "order", {small_key, large_key},
        fmt::format("{} is {:.6g}, above {} = {:.6g}", small_key, *small, large_key, *large));
  };
  for (const AtMost& pair : kAtMost) compare(pair.small, pair.large);
  for (const char* format : {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8_e4m3", "int8"}) {
    // A library computes fp64 and fp32 products on matrix units where there are any.
    const std::string tensor = fmt::format("peak.{}_tensor.dense", format);
    const std::string peak = device.find(tensor) ? tensor : peak_key(format);
    compare(fmt::format("calibrated.best.{}", format), peak);
    for (const int size : {1024, 2048, 4096, 8192, 16384})
      compare(fmt::format("calibrated.gemm.{}.{}", format, size), peak);
  }
}

struct Product {
  const char *a, *b, *product;
};
constexpr Product kProducts[] = {
    {"units.count", "units.vector_lanes_per_unit", "units.vector_lanes"},
    {"units.count", "units.matrix_units_per_unit", "units.matrix_units"},
    {"link.device.count", "link.device.per_link_one_way_gbs", "link.device.one_way_gbs"},
};
// Two-way is twice one-way.
constexpr AtMost kTwoWay[] = {
    {"link.device.one_way_gbs", "link.device.two_way_gbs"},
    {"link.host.one_way_gbs", "link.host.two_way_gbs"},
    {"link.die.one_way_gbs", "link.die.two_way_gbs"},
};

void products_hold(const DeviceFacts& device, std::vector<Breach>& found) {
  for (const Product& p : kProducts) {
    const auto a = device.number(p.a), b = device.number(p.b), product = device.number(p.product);
    if (!a || !b || !product || near(*a * *b, *product)) continue;
    add(found, device, "product", {p.a, p.b, p.product},
        fmt::format("{} x {} are {:.6g}, but {} is {:.6g}", p.a, p.b, *a * *b, p.product, *product));
  }
  for (const AtMost& p : kTwoWay) {
    const auto one = device.number(p.small), two = device.number(p.large);
    if (!one || !two || near(2 * *one, *two)) continue;
    add(found, device, "product", {p.small, p.large},
        fmt::format("{} is {:.6g}, which is not twice {} = {:.6g}", p.large, *two, p.small, *one));
  }
  // Dies of one package are alike: so many units cannot be shared out among them.
  for (const char* parts_key : {"units.dies", "units.groups"}) {
    const auto units = device.number("units.count_full_die"), parts = device.number(parts_key);
    if (!units || !parts || *parts == 0 || std::fmod(*units, *parts) == 0) continue;
    add(found, device, "product", {"units.count_full_die", parts_key},
        fmt::format("{} units do not divide among {} {}", *units, *parts, parts_key));
  }
}

// A peak needs arithmetic; what is converted to a wider format has none of its own.
void peak_needs_support(const DeviceFacts& device, std::vector<Breach>& found) {
  for (const PeakField& field : peak_fields()) {
    const std::string key = peak_key(field.name), emulated = fmt::format("peak.{}.emulated", field.name),
                      support = fmt::format("support.{}.matmul", field.name);
    const bool has_peak = device.number(key).value_or(0) > 0;
    if (has_peak && device.flag(emulated) == true)
      add(found, device, "support", {key, emulated}, fmt::format("{} is given, but {} is yes", key, emulated));
    if (has_peak && field.matrix && device.flag(support) == false)
      add(found, device, "support", {key, support}, fmt::format("{} is given, but {} is no", key, support));
    if (device.flag(emulated) == true && device.flag(support) == true)
      add(found, device, "support", {emulated, support}, fmt::format("{} and {} are both yes", emulated, support));
  }
}

// Largest E4M3: 448 (OCP 8-bit Floating Point Specification) or 240 where the format has no negative zero (FNUZ).
void fp8_encoding_fits_its_largest(const DeviceFacts& device, std::vector<Breach>& found) {
  const auto encoding = device.text("support.fp8.encoding");
  const auto largest = device.number("support.fp8.e4m3_max");
  if (!encoding || !largest) return;
  const double wanted = *encoding == "fnuz" ? 240 : 448;
  if (*largest == wanted) return;
  add(found, device, "fp8", {"support.fp8.encoding", "support.fp8.e4m3_max"},
      fmt::format("E4M3 of encoding {} reaches {}, not {}", *encoding, wanted, *largest));
}

// Halving the bits of an operand doubles the rate of a matrix unit or leaves it: no design has done better. GeForce
// halves what accumulates in fp32, so that int8 and fp4 there are four times bf16 and fp8.
void narrower_is_at_most_so_much_faster(const DeviceFacts& device, std::vector<Breach>& found) {
  struct Step {
    const char *wide, *narrow;
    double most;
  };
  constexpr Step kSteps[] = {{"bf16", "int8", 4},      {"bf16", "fp8_e4m3", 2},  {"bf16", "fp8_e5m2", 2},
                             {"fp8_e4m3", "mxfp4", 4}, {"fp8_e4m3", "nvfp4", 4}, {"int8", "int4", 2}};
  for (const Step& step : kSteps) {
    const auto wide = device.number(peak_key(step.wide)), narrow = device.number(peak_key(step.narrow));
    if (!wide || !narrow || *wide == 0 || *narrow <= step.most * *wide * (1 + kTolerance)) continue;
    add(found, device, "ratio", {peak_key(step.narrow), peak_key(step.wide)},
        fmt::format("{} is {:.3g} times {}; at most {} times is possible (is it a sparse peak?)", peak_key(step.narrow),
                    *narrow / *wide, peak_key(step.wide), step.most));
  }
}

constexpr Rule kRules[] = {
    {"units", "a peak is units x clock x operations per clock", peak_is_units_times_clock_times_rate},
    {"sparse", "a sparse peak is twice the dense one", sparse_is_twice_dense},
    {"bandwidth", "memory bandwidth is bus width x data rate", bandwidth_is_bus_times_rate},
    {"memory-type", "a kind of memory runs at rates it is sold with", memory_type_fits_its_rate},
    {"capacity", "GDDR memory is made of whole chips", capacity_is_whole_chips},
    {"capacity", "HBM memory is made of whole stacks", capacity_is_whole_stacks},
    {"order", "a part, a measurement or a limit does not exceed the whole", part_is_not_more_than_the_whole},
    {"product", "counts multiply, links add up", products_hold},
    {"support", "a peak needs arithmetic in the format", peak_needs_support},
    {"fp8", "the largest fp8 value follows from the encoding", fp8_encoding_fits_its_largest},
    {"ratio", "half the bits are at most twice as fast", narrower_is_at_most_so_much_faster},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

std::vector<Breach> breaches(const DeviceFacts& device) {
  std::vector<Breach> found;
  for (const Rule& rule : kRules) rule.check(device, found);
  return found;
}

}  // namespace hpqf::device
