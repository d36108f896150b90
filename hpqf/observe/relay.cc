#include "hpqf/observe/relay.h"

#include <algorithm>
#include <utility>

namespace hpqf::observe {

std::shared_ptr<const Relay::Sinks> Relay::sinks() const {
  const std::lock_guard lock(mutex_);
  return sinks_;
}

void Relay::add(std::shared_ptr<EventSink> sink) {
  if (!sink) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(*sinks_, sink) != sinks_->end()) return;
  auto next = std::make_shared<Sinks>(*sinks_);
  next->push_back(std::move(sink));
  sinks_ = std::move(next);
}

void Relay::remove(const EventSink* sink) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_shared<Sinks>(*sinks_);
  std::erase_if(*next, [&](const auto& s) { return s.get() == sink; });
  sinks_ = std::move(next);
}

void Relay::on_op(const OpEvent& event) {
  const auto now = sinks();
  for (const auto& sink : *now) sink->on_op(event);
}

void Relay::on_cast(const CastEvent& event) {
  const auto now = sinks();
  for (const auto& sink : *now) sink->on_cast(event);
}

}  // namespace hpqf::observe
