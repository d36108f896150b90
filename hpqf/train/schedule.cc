#include "hpqf/train/schedule.h"

#include <fmt/format.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "hpqf/base/error.h"

namespace hpqf::train {

const char* name(ScheduleKind kind) { return kind == ScheduleKind::cosine ? "cosine" : "constant"; }

ScheduleKind parse_schedule(std::string_view text) {
  for (const ScheduleKind kind : {ScheduleKind::constant, ScheduleKind::cosine}) {
    if (text == name(kind)) return kind;
  }
  throw Error(fmt::format("schedule '{}'", text), "constant, cosine", "choose one of them");
}

double lr_factor(const Schedule& schedule, int64_t applied) {
  if (applied < schedule.warmup_steps) return static_cast<double>(applied + 1) / schedule.warmup_steps;
  if (schedule.kind == ScheduleKind::constant) return 1;
  const int64_t length = schedule.total_steps - schedule.warmup_steps;
  if (length <= 0) {
    throw Error(
        fmt::format("a cosine schedule over {} steps with {} of warm-up", schedule.total_steps, schedule.warmup_steps),
        "more steps than warm-up", "set total_steps (the trainer does when it knows the length of the run)");
  }
  const double t = std::min(1.0, static_cast<double>(applied - schedule.warmup_steps) / length);
  return schedule.final_factor + (1 - schedule.final_factor) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups()) rates.push_back(group.options().get_lr());
  return rates;
}

void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& base, const Schedule& schedule,
                        int64_t applied) {
  auto& groups = optimizer.param_groups();
  if (groups.size() != base.size()) {
    throw Error(fmt::format("{} learning rates for {} parameter groups", base.size(), groups.size()),
                "one for each group", "take them from learning_rates(optimizer)");
  }
  const double factor = lr_factor(schedule, applied);
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_lr(base[i] * factor);
}

}  // namespace hpqf::train
