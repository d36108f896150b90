#include "hpqf/observe/audit.h"

#include <map>
#include <mutex>
#include <tuple>

#include "hpqf/observe/op_totals.h"

namespace hpqf::observe {

struct Audit::Impl {
  OpTotals ops;

  // Everything below is touched once a step, or when something overflowed.
  mutable std::mutex mutex;
  double total_seconds = 0;
  int64_t steps = 0, samples = 0;
  AuditReport earlier;                 // of the steps before a resume
  std::vector<UncountedOp> uncounted;  // share_of_time is the sum over samples
  std::map<std::string, size_t> uncounted_index;
  std::vector<plan::CastObservation> casts;
  std::map<std::tuple<std::string, plan::Role, std::string, bool>, size_t> cast_index;
};

Audit::Audit() : impl_(std::make_unique<Impl>()) {}
Audit::~Audit() = default;

void Audit::on_op(const OpEvent& event) { impl_->ops.add(event); }

void Audit::on_cast(const CastEvent& event) {
  std::string layer(event.layer), format = formats::to_string(event.format);
  const std::lock_guard lock(impl_->mutex);
  auto [it, is_new] =
      impl_->cast_index.emplace(std::tuple(layer, event.role, format, event.nonfinite_in > 0), impl_->casts.size());
  if (is_new) impl_->casts.push_back({std::move(layer), event.role, std::move(format), 0, 0, 0});
  plan::CastObservation& cast = impl_->casts[it->second];
  cast.elements += event.elements;
  cast.nonfinite_in += event.nonfinite_in;
  cast.overflow += event.overflow;
}

void Audit::add_step(double seconds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->total_seconds += seconds;
  ++impl_->steps;
}

void Audit::add_uncounted(std::vector<UncountedOp> ops) {
  const std::lock_guard lock(impl_->mutex);
  ++impl_->samples;
  for (UncountedOp& op : ops) {
    auto [it, is_new] = impl_->uncounted_index.emplace(op.op, impl_->uncounted.size());
    if (is_new) {
      impl_->uncounted.push_back(std::move(op));
    } else {
      impl_->uncounted[it->second].share_of_time += op.share_of_time;
      impl_->uncounted[it->second].calls += op.calls;
    }
  }
}

AuditReport Audit::report() const {
  AuditReport report;
  report.rows = impl_->ops.rows();
  const std::lock_guard lock(impl_->mutex);
  report.total_seconds = impl_->total_seconds;
  report.steps = impl_->steps;
  report.uncounted = impl_->uncounted;
  report.sampled_steps = impl_->samples;
  for (UncountedOp& op : report.uncounted) op.share_of_time /= static_cast<double>(impl_->samples);
  return impl_->earlier.steps > 0 ? merged(impl_->earlier, report) : report;
}

void Audit::restore(AuditReport earlier) {
  clear();
  const std::lock_guard lock(impl_->mutex);
  impl_->earlier = std::move(earlier);
}

plan::Observations Audit::take_observations(int64_t step) {
  plan::Observations observations;
  observations.step = step;
  const std::lock_guard lock(impl_->mutex);
  observations.casts.swap(impl_->casts);
  impl_->cast_index.clear();
  return observations;
}

void Audit::clear() {
  impl_->ops.clear();
  const std::lock_guard lock(impl_->mutex);
  impl_->total_seconds = 0;
  impl_->steps = impl_->samples = 0;
  impl_->uncounted.clear();
  impl_->uncounted_index.clear();
  impl_->earlier = {};
  impl_->casts.clear();
  impl_->cast_index.clear();
}

}  // namespace hpqf::observe
