#include "hpqf/cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hpqf/base/error.h"

namespace hpqf::cost {

Estimate estimate(const Workload& work, const PrecisionPlan& plan, std::string precision, const DeviceRates& device,
                  const Offer* offer, const Training& training) {
  if (!(training.samples >= 1))
    throw Error(fmt::format("a training of {} samples", training.samples), "at least one sample",
                "say how much is trained, e.g. --epochs 90 or --samples 1e6");
  Estimate e;
  e.device = device.id;
  e.precision = std::move(precision);
  e.step = step_time(work, plan, device, training.step);
  e.memory = training_memory(work, plan, training.step.batch, training.step.optimizer_states, &device);
  const double per_step = training.step.batch * training.step.devices;
  e.steps = std::ceil(training.samples / per_step);
  e.seconds = e.steps * e.step.total();
  e.samples_per_second = per_step / e.step.total();
  e.device_hours = e.seconds * training.step.devices / 3600;
  e.energy = energy(device.watts.value, e.device_hours, training.energy);
  if (offer) {
    const Band& p = offer->amount;
    e.money = {p.low * e.device_hours, p.mid * e.device_hours, p.high * e.device_hours};
    e.currency = offer->currency;
  }
  return e;
}

Change change(const Estimate& from, const Estimate& to, const Offer* offer, const Conversion& conversion) {
  const double ratio = from.seconds / to.seconds;
  // What no format shortens pulls a ratio towards 1: its high end is an end of the band, its low end the other.
  const auto with = [&](double left_out_from, double left_out_to) {
    return (from.step.roofline() + left_out_from) / (to.step.roofline() + left_out_to);
  };
  const double most = with(from.step.left_out.low, to.step.left_out.low);
  const double least = with(from.step.left_out.high, to.step.left_out.high);
  const double low = std::min({most, least, ratio}), high = std::max({most, least, ratio});
  Change c;
  c.ratio = {ratio_band(low, from.step.error, to.step.error).low, ratio,
             ratio_band(high, from.step.error, to.step.error).high};
  c.saved = 1 - 1 / ratio;
  if (offer) {
    c.saved_money = from.money.mid - to.money.mid;
    c.break_even = break_even(conversion, c.ratio, offer->amount);
  }
  return c;
}

}  // namespace hpqf::cost
