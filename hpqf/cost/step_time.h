// How long one training step takes on a device, modelled: a roofline for each product and each pass over memory.
//
//   T = sum over products  max(FLOPs / (rate x size), bytes / bandwidth)
//     + sum over other ops bytes / bandwidth
//     + rounding operands + optimizer pass + launches x launch time
//     + the part of the all-reduce that the backward pass does not hide
//     + what a roofline leaves out: recomputation, sharding, host and framework, data loading
//
// The last term is a share of the step in 16 bits and the same for every plan: no format makes it shorter.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/cost/device_rates.h"
#include "hpqf/cost/traffic.h"
#include "hpqf/cost/workload.h"
#include "hpqf/plan/plan.h"

namespace hpqf::cost {

// The share of the rate of large products that a product reaches which takes `seconds` at that rate: short ones do not
// fill a device. Points (seconds, share), linear in log(seconds) between them, constant beyond: 3.2 us 0.63, 51 us
// 0.95, 410 us
// 1. Source: the matrix efficiencies of calculon-ai/calculon's A100 description (0.6 from 1 GFLOP, 0.9 from 16, 0.95
// from 128, at 312 TFLOP/s), over the largest; that time at peak and not FLOPs decides is our reading of them.
HPQF_API double size_efficiency(double seconds);

// Ring all-reduce of `bytes` over n devices: 2 (n - 1) / n x bytes / link + 2 (n - 1) x latency. 0 for one device.
HPQF_API double ring_all_reduce_seconds(double bytes, int devices, double link, double latency);

struct StepOptions {
  double batch = 32;  // samples per device and step
  int devices = 1;
  int optimizer_states = 2;    // see optimizer_states()
  double overlap = 0;          // share of the backward pass that communication can hide behind, 0 to 1
  double link_latency = 5e-6;  // seconds per hop
  // What the roofline leaves out, over the roofline's time of the step in 16 bits. Published utilisations give 0.6 (175
  // billion parameters on A100, Megatron-LM, 51.4 % MFU) and 0.7 to 1.0 (8 billion on H100, torchtitan, 33 to 39 %
  // MFU); docs/cost.md has the commands. 0 is a step that nothing disturbs.
  Band left_out{0, 0.7, 1};
};

struct FormatShare {
  Format format = Format::fp32;
  double flops = 0;    // per step and device
  double seconds = 0;  // of products in this arithmetic
};

struct HPQF_API StepTime {
  double products = 0, others = 0, casts = 0, optimizer = 0, launches = 0;  // seconds
  double communication = 0, exposed = 0;                                    // all of it; what is not hidden
  Band left_out;                                                            // seconds
  double memory_bound = 0;  // seconds of `products` in which the memory is the limit
  std::vector<FormatShare> formats;
  double emulated_flops = 0, flops = 0;     // per step and device
  double error = 0;                         // relative, see relative_error()
  std::vector<std::string> emulated_names;  // formats the device does not compute in
  double roofline() const { return products + others + casts + optimizer + launches + exposed; }
  double total() const { return roofline() + left_out.mid; }
  // FLOPs of products over time and the sheet's peak of the format most of them ran in; 0 when that is unknown.
  double utilisation(const DeviceRates& device) const;
};

// Error for impossible options or device facts.
HPQF_API StepTime step_time(const Workload& work, const PrecisionPlan& plan, const DeviceRates& device,
                            const StepOptions& options);
// What that rests on, to be shown beside it: the rates of `used` arithmetic (empty: all), the bandwidth, the rest.
HPQF_API std::vector<Assumption> step_assumptions(const DeviceRates& device, const StepOptions& options,
                                                  std::span<const Format> used = {});

}  // namespace hpqf::cost
