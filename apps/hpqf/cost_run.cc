#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/hpqf/cost_config.h"
#include "apps/hpqf/cost_inputs.h"
#include "apps/hpqf/cost_report.h"
#include "apps/hpqf/cost_run_folder.h"
#include "hpqf/base/error.h"
#include "hpqf/cost/projection.h"
#include "hpqf/cost/step_time.h"
#include "hpqf/observe/audit_workload.h"
#include "hpqf/observe/human.h"
#include "hpqf/observe/text_table.h"

namespace hpqf::app {
namespace {

using Json = nlohmann::ordered_json;

class RunReport {
 public:
  explicit RunReport(const CostConfig& c) : c_(c), run_(read_cost_run(c.run)) {
    if (c_.devices.size() > 1)
      throw Error(fmt::format("a run on {} kinds of devices", c_.devices.size()), "the one it ran on",
                  "give one --device");
  }

  void time() {
    const cost::RunLog& log = run_.log;
    add("steps", fmt::format("{}, {} of them skipped", log.steps, log.skipped), "measured", log.steps);
    add("epochs begun", fmt::format("{}", log.epochs), "measured", log.epochs);
    add("samples", observe::human_count(log.samples), "measured", log.samples);
    add("wall time of all parts", observe::human_seconds(log.wall_seconds), "measured", log.wall_seconds);
    if (log.repeated_seconds > 0)
      add("of it steps taken again", observe::human_seconds(log.repeated_seconds), "measured", log.repeated_seconds);
    add("inside steps", observe::human_seconds(log.step_seconds), "measured", log.step_seconds);
    hours_ = log.wall_seconds / 3600 * static_cast<double>(c_.gpus);
    add("device-hours", hours_text(hours_), "measured", hours_);
    if (log.torn)
      note("the last line of metrics.jsonl is cut: the run was killed while it wrote; that step is left out");
    if (log.wrong_time > 0)
      note(fmt::format("{} lines have a negative time (a clock was set back); they count as nothing", log.wrong_time));
    if (log.without_time > 0)
      note(fmt::format("{} lines say nothing about time and count as nothing", log.without_time));
    if (log.without_samples > 0)
      note(fmt::format("{} lines do not say how many samples they took, and there is no config.json",
                       log.without_samples));
    if (run_.audit)
      if (const double share = observe::emulated_share(*run_.audit); share > 0)
        note(fmt::format("{:.0f} % of the FLOPs ran emulated (measured): the numbers of the format, not its speed",
                         100 * share));
  }

  void device() {
    if (c_.devices.empty()) return;
    std::vector<std::string> formats;
    for (const plan::Rule& rule : run_.plan.rules()) formats.push_back(formats::name(rule.precision.weight.format));
    rates_ = cost_devices(c_, formats).front();
    if (const auto e = cost::energy(rates_->watts.value, hours_, energy_options(c_))) {
      add("energy", fmt::format("{:.3g} kWh", e->kwh), "modelled", e->kwh);
      if (e->co2_kg) add("CO2", fmt::format("{:.3g} kg", *e->co2_kg), "modelled", *e->co2_kg);
    } else {
      note(fmt::format("the power of {} is unknown: no energy is given", rates_->id));
    }
    assumptions_ = cost::energy_assumptions(rates_->watts, energy_options(c_));
  }

  void money() {
    const std::string id = rates_ ? rates_->id : "";
    if (c_.price == 0 && (id.empty() || id == "this")) {
      note("no price: give --price for an hour of the device, or --device with one of the device database");
      return;
    }
    offer_ = cost_offer(c_, id);
    const double so_far = hours_ * offer_->amount.mid;
    add_money("cost so far", so_far);
    if (run_.log.samples > 0) add_money("per 1,000 samples", 1000 * so_far / run_.log.samples);
    if (run_.log.epoch_samples > 0)
      add_money("per epoch", so_far / run_.log.samples * run_.log.epoch_samples);
    else
      note("no epoch is known to be complete: there is no cost of one yet");
    for (std::string& line : offer_notes(*offer_)) prices_.push_back(std::move(line));
  }

  void comparison() {
    if (!c_.against.empty()) {
      measured_ratio();
    } else if (rates_ && run_.audit) {
      modelled_ratio();
    } else {
      note(run_.audit ? "no comparison with fp32: give --against with an fp32 run (measured), or --device (modelled)"
                      : "no comparison with fp32: there is no audit.json, for the run has not come to its end");
    }
  }

  void projection() {
    if (!c_.target) return;
    const cost::Projection p = cost::project(run_.log.loss, *c_.target, {});
    json_["projection"] = {{"target", *c_.target}, {"outlook", cost::name(p.outlook)}};
    const std::string what = fmt::format("loss {} ", *c_.target);
    if (p.outlook == cost::Outlook::cannot_tell) {
      add(what, "cannot tell", "modelled", std::nan(""));
      json_["projection"]["reason"] = p.reason;
      note("when the loss reaches the target cannot be told: " + p.reason);
      return;
    }
    json_["projection"]["steps"] = to_json(p.steps);
    if (p.outlook == cost::Outlook::reached) {
      add(what, fmt::format("reached near step {:.0f}", p.steps.mid), "measured", p.steps.mid);
      return;
    }
    add(what, fmt::format("near step {:.0f} ({:.0f} to {:.0f})", p.steps.mid, p.steps.low, p.steps.high), "modelled",
        p.steps.mid);
    if (offer_ && run_.log.steps > 0) {
      const double each = hours_ * offer_->amount.mid / static_cast<double>(run_.log.steps);
      add("cost until then",
          fmt::format("{} ({} to {})", money_text(each * p.steps.mid, offer_->currency),
                      money_text(each * p.steps.low, ""), money_text(each * p.steps.high, "")),
          "modelled", each * p.steps.mid);
    }
    assumptions_.push_back({cost::Basis::modelled,
                            fmt::format("the loss goes on as {:.4g} + {:.4g} n^-{:.3f}, 80 % of resampled fits within "
                                        "the range; changes of the learning rate to come are not in it",
                                        p.fit.a, p.fit.b, p.fit.c)});
  }

  int finish() {
    observe::TextTable table({{"figure"}, {"value", true}, {"basis"}});
    for (const auto& row : rows_) table.add(row);
    json_["notes"] = notes_;
    json_["prices"] = prices_;
    json_["assumptions"] = to_json(assumptions_);
    const std::string what = run_.model.empty() ? "" : fmt::format(": {} in {}", run_.model, run_.precision);
    publish(c_,
            fmt::format("{}{}\n\n{}{}{}{}", run_.folder, what, table.text(), note_text("To know:", notes_),
                        note_text("Prices:", prices_), assumption_text("Modelled figures rest on:", assumptions_)),
            json_);
    return 0;
  }

 private:
  void add(const std::string& what, std::string text, const char* basis, double value) {
    rows_.push_back({what, std::move(text), basis});
    json_["figures"].push_back({{"what", what}, {"value", value}, {"basis", basis}});
  }
  void add_money(const std::string& what, double amount) {
    add(what, money_text(amount, offer_->currency), "modelled", amount);
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }

  void measured_ratio() {
    const CostRun other = read_cost_run(c_.against);
    if (!run_.model.empty() && !other.model.empty() && run_.model != other.model)
      throw Error(fmt::format("{} against {}", run_.model, other.model), "two runs of one model",
                  "give a run of the same model");
    if (run_.usual_samples != other.usual_samples)
      note(fmt::format("the runs differ in their batch: {} and {} samples a step", run_.usual_samples,
                       other.usual_samples));
    const double mine = run_.samples_per_second(), theirs = other.samples_per_second();
    if (!(mine > 0 && theirs > 0))
      throw Error("a comparison of runs without time or samples", "two runs whose metrics say both",
                  "compare runs that hpqf train wrote");
    ratio(mine / theirs, "measured", fmt::format("speed against {}", c_.against));
  }

  // The same work by the same model in both precisions; the run's own time stays the one that counts.
  void modelled_ratio() {
    const cost::Workload work = run_.workload();
    cost::StepOptions step{
        .batch = std::max(1.0, run_.log.samples / static_cast<double>(run_.log.steps) / static_cast<double>(c_.gpus)),
        .devices = static_cast<int>(c_.gpus)};
    if (c_.left_out) step.left_out = {*c_.left_out, *c_.left_out, *c_.left_out};
    const cost::StepTime fp32 = cost::step_time(work, PrecisionPlan(), *rates_, step);
    const cost::StepTime low = cost::step_time(work, run_.plan, *rates_, step);
    std::vector<Format> used{Format::fp32};
    for (const cost::FormatShare& share : low.formats) used.push_back(share.format);
    for (const cost::Assumption& a : work.assumptions) assumptions_.push_back(a);
    for (const cost::Assumption& a : cost::step_assumptions(*rates_, step, used)) assumptions_.push_back(a);
    ratio(fp32.total() / low.total(), "modelled", fmt::format("speed of the plan against fp32 on {}", rates_->id));
  }

  void ratio(double r, const char* basis, const std::string& what) {
    add(what, fmt::format("{:.2f}", r), basis, r);
    if (!offer_) return;
    const double saved = hours_ * offer_->amount.mid * (r - 1);
    add(saved >= 0 ? "saved so far" : "lost so far", money_text(std::abs(saved), offer_->currency), basis, saved);
  }

  const CostConfig& c_;
  CostRun run_;
  double hours_ = 0;
  std::optional<cost::DeviceRates> rates_;
  std::optional<cost::Offer> offer_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::string> notes_, prices_;
  std::vector<cost::Assumption> assumptions_;
  Json json_ = cost_json("run");
};

}  // namespace

int cost_of_run(const CostConfig& config) {
  RunReport report(config);
  report.time();
  report.device();
  report.money();
  report.comparison();
  report.projection();
  return report.finish();
}

}  // namespace hpqf::app
