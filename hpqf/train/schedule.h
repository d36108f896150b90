// Learning rate schedules: a pure factor of the number of *applied* steps. A skipped step moves nothing.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace torch::optim {
class Optimizer;
}

namespace hpqf::train {

enum class ScheduleKind : uint8_t { constant, cosine };
HPQF_API const char* name(ScheduleKind kind);
HPQF_API ScheduleKind parse_schedule(std::string_view name);  // Error with the list

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup_steps = 0;  // linear from lr/warmup to lr, before the rest
  int64_t total_steps = 0;   // cosine: where it ends; 0 = the whole run (the trainer fills it in)
  double final_factor = 0;   // cosine: what is left of the learning rate at the end
  bool operator==(const Schedule&) const = default;
};

// Factor on the base learning rate for the step that follows `applied` applied steps.
// Cosine (Loshchilov & Hutter, arXiv 1608.03983, one cycle): f + (1 - f) (1 + cos(pi t)) / 2 with t in [0, 1] after the
// warm-up.
HPQF_API double lr_factor(const Schedule& schedule, int64_t applied);

// Per parameter group, as they stand in the optimizer now.
HPQF_API std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
// lr of each group = base * lr_factor. Error when the number of groups is not that of `base`.
HPQF_API void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& base,
                                 const Schedule& schedule, int64_t applied);

}  // namespace hpqf::train
