#include "hpqf/cost/step_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hpqf/base/error.h"
#include "hpqf/cost/memory.h"

namespace hpqf::cost {
namespace {

void check(const StepOptions& o) {
  if (!(o.batch >= 1) || o.devices < 1)
    throw Error(fmt::format("a step of {} samples on {} devices", o.batch, o.devices), "at least one of each",
                "correct the batch or the number of devices");
  if (!(o.overlap >= 0 && o.overlap <= 1))
    throw Error(fmt::format("overlap {}", o.overlap), "a share from 0 (nothing hidden) to 1 (the whole backward pass)",
                "correct the overlap");
  const Band& l = o.left_out;
  if (!(l.low >= 0 && l.low <= l.mid && l.mid <= l.high && l.high <= 100))
    throw Error(fmt::format("left-out shares {}, {}, {}", l.low, l.mid, l.high), "numbers from 0 to 100, in order",
                "correct the share");
}

// The widest-used format of 16 bits the device computes in; fp32 without one.
PrecisionPlan sixteen_bits(const DeviceRates& device) {
  for (const Format format : {Format::bf16, Format::fp16})
    if (device.find(format)) return PrecisionPlan::uniform(formats::name(format));
  return {};
}

class StepModel {
 public:
  StepModel(const DeviceRates& device, const StepOptions& options) : device_(device), options_(options) {}

  void add(const PlannedOp& planned) {
    const Op& op = *planned.op;
    for (const Product p : {Product::forward, Product::dgrad, Product::wgrad}) product(planned, p);
    pass(op.forward, planned.activation_bytes, false);
    pass(op.backward, planned.activation_bytes, true);
    const int passes = op.flops > 0 ? 1 + op.dgrad + op.wgrad : 2;
    step_.launches += passes * op.launches * device_.launch.value;
  }

  // Reads gradient, master and states, writes master and states: once over everything.
  void optimizer(double parameters) {
    step_.optimizer = parameters * 4 * (3 + 2 * options_.optimizer_states) / device_.memory_rate();
  }

  void communication(double bytes) {
    step_.communication = ring_all_reduce_seconds(bytes, options_.devices, device_.link.value, options_.link_latency);
    step_.exposed = std::max(0.0, step_.communication - options_.overlap * backward_);
  }

  StepTime take() {
    std::sort(step_.formats.begin(), step_.formats.end(),
              [](const FormatShare& x, const FormatShare& y) { return x.flops > y.flops; });
    return std::move(step_);
  }

 private:
  void product(const PlannedOp& planned, Product which) {
    ProductCost cost = product_cost(planned, which, options_.batch);
    if (cost.flops == 0) return;
    const DeviceRates::Arithmetic arithmetic = device_.arithmetic(cost.a, cost.b);
    if (arithmetic.emulated) {
      // Rounded and unrounded operands are fp32 in memory: one more pass over both.
      note_emulated(cost);
      PlannedOp fp32{planned.op, {}, 4};
      cost = product_cost(fp32, which, options_.batch);
      cost.cast_bytes = 8 * (cost.a_elements + cost.b_elements);
    }
    const FormatRate& rate = *arithmetic.rate;
    const double at_peak = cost.flops / rate.rate.value;
    const double compute = at_peak / size_efficiency(at_peak / planned.op->launches);
    const double memory = cost.bytes / device_.memory_rate();
    const double seconds = std::max(compute, memory);
    step_.products += seconds;
    if (memory > compute) step_.memory_bound += seconds;
    const bool timed = device_.casts_in_rates && !arithmetic.emulated;
    const double casts = timed ? 0 : cost.cast_bytes / device_.memory_rate();
    step_.casts += casts;
    if (which != Product::forward) backward_ += seconds + casts;
    step_.flops += cost.flops;
    step_.error = std::max(step_.error, relative_error(rate.rate.basis));
    share(rate.format, cost.flops, seconds);
  }

  void pass(double elements, double bytes, bool backward) {
    const double seconds = options_.batch * elements * bytes / device_.memory_rate();
    step_.others += seconds;
    if (backward) backward_ += seconds;
  }

  void note_emulated(const ProductCost& cost) {
    step_.emulated_flops += cost.flops;
    for (const Format format : {cost.a, cost.b}) {
      if (!device_.arithmetic(format, format).emulated) continue;
      const std::string name = formats::name(format);
      auto& names = step_.emulated_names;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }

  void share(Format format, double flops, double seconds) {
    for (FormatShare& s : step_.formats) {
      if (s.format != format) continue;
      s.flops += flops;
      s.seconds += seconds;
      return;
    }
    step_.formats.push_back({format, flops, seconds});
  }

  const DeviceRates& device_;
  const StepOptions& options_;
  StepTime step_;
  double backward_ = 0;
};

}  // namespace

double size_efficiency(double seconds) {
  struct Point {
    double seconds, share;
  };
  constexpr double kPeak = 312e12;
  constexpr std::array kPoints{Point{1e9 / kPeak, 0.6 / 0.95}, Point{16e9 / kPeak, 0.9 / 0.95},
                               Point{128e9 / kPeak, 1}};
  if (!(seconds > kPoints.front().seconds)) return kPoints.front().share;
  for (size_t i = 1; i < kPoints.size(); ++i) {
    const Point &low = kPoints[i - 1], &high = kPoints[i];
    if (seconds > high.seconds) continue;
    return low.share +
           (high.share - low.share) * std::log(seconds / low.seconds) / std::log(high.seconds / low.seconds);
  }
  return 1;
}

double ring_all_reduce_seconds(double bytes, int devices, double link, double latency) {
  if (devices <= 1) return 0;
  return 2.0 * (devices - 1) / devices * bytes / link + 2.0 * (devices - 1) * latency;
}

double StepTime::utilisation(const DeviceRates& device) const {
  if (formats.empty() || total() <= 0) return 0;
  const FormatRate* rate = device.find(formats.front().format);
  return rate && rate->peak > 0 ? flops / (rate->peak * total()) : 0;
}

namespace {

StepTime roofline(const Workload& work, const PrecisionPlan& plan, const DeviceRates& device,
                  const StepOptions& options) {
  StepModel model(device, options);
  double wire = 0;
  for (const PlannedOp& op : planned(work, plan, &device)) {
    model.add(op);
    wire += op.op->parameters * bytes_per_element(op.precision.wire);
  }
  model.optimizer(work.parameters());
  model.communication(wire - 4 * work.tied_parameters);
  return model.take();
}

}  // namespace

StepTime step_time(const Workload& work, const PrecisionPlan& plan, const DeviceRates& device,
                   const StepOptions& options) {
  check(options);
  device.check();
  if (options.devices > 1 && !(device.link.value > 0))
    throw Error(fmt::format("{} devices {}, whose link is unknown", options.devices, device.id),
                "one device, or a known bandwidth between them", "give the bandwidth, e.g. --link 25 (GB/s)");
  StepTime step = roofline(work, plan, device, options);
  const double reference = roofline(work, sixteen_bits(device), device, options).roofline();
  const Band& share = options.left_out;
  step.left_out = {share.low * reference, share.mid * reference, share.high * reference};
  return step;
}

std::vector<Assumption> step_assumptions(const DeviceRates& d, const StepOptions& o, std::span<const Format> used) {
  std::vector<Assumption> list;
  for (const FormatRate& rate : d.formats) {
    if (!used.empty() && std::find(used.begin(), used.end(), rate.format) == used.end()) continue;
    const std::string peak = rate.peak > 0 ? fmt::format(" of {:.4g} peak", rate.peak / 1e12) : "";
    list.push_back({rate.rate.basis, fmt::format("{} {}: large products reach {:.4g} TFLOP/s{} ({}: {})", d.id,
                                                 formats::name(rate.format), rate.rate.value / 1e12, peak,
                                                 name(rate.rate.basis), rate.rate.source)});
  }
  list.push_back({d.bandwidth.basis, fmt::format("{} memory: {:.4g} GB/s ({}, {}), {:.0f} % of it reached ({}, {})",
                                                 d.id, d.bandwidth.value / 1e9, name(d.bandwidth.basis),
                                                 d.bandwidth.source, 100 * d.bandwidth_achievable.value,
                                                 name(d.bandwidth_achievable.basis), d.bandwidth_achievable.source)});
  list.push_back({d.launch.basis,
                  fmt::format("{:.1f} us from one kernel to the next ({})", 1e6 * d.launch.value, d.launch.source)});
  if (o.devices > 1)
    list.push_back(
        {d.link.basis,
         fmt::format("gradients are all-reduced around a ring of {} devices at {:.4g} GB/s one way ({}, {}), "
                     "{:.1f} us a hop; {:.0f} % of the backward pass can hide it",
                     o.devices, d.link.value / 1e9, name(d.link.basis), d.link.source, 1e6 * o.link_latency,
                     100 * o.overlap)});
  list.push_back({Basis::quoted,
                  "short products reach less: 63 % of that when they take 3 us at peak, 95 % at 51 us, all "
                  "of it from 0.4 ms (matrix efficiencies of Calculon's A100 description)"});
  list.push_back({Basis::assumed, "every op reads and writes memory once, nothing is fused"});
  const Band& l = o.left_out;
  list.push_back(
      {l.low == l.high ? Basis::given : Basis::assumed,
       fmt::format("what a roofline leaves out (recomputation, sharding, host, data loading) takes {} of its time "
                   "in 16 bits{}, whatever the plan",
                   l.mid, l.low == l.high ? "" : fmt::format(" ({} to {} in the ranges)", l.low, l.high))});
  list.push_back({Basis::assumed, "the device computes natively in every format it has units for"});
  return list;
}

}  // namespace hpqf::cost
