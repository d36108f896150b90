// Sends each event to every sink that listens at the moment; sinks come and go while the runtime lives.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "hpqf/base/export.h"
#include "hpqf/observe/event.h"

namespace hpqf::observe {

// Events take the list as it stands without a lock held while sinks run; a sink that is removed may still hear events
// that had begun. Thread safe.
class HPQF_API Relay : public EventSink {
 public:
  void add(std::shared_ptr<EventSink> sink);  // null and sinks that listen already are ignored
  void remove(const EventSink* sink);
  void on_op(const OpEvent& event) override;
  void on_cast(const CastEvent& event) override;

 private:
  using Sinks = std::vector<std::shared_ptr<EventSink>>;
  std::shared_ptr<const Sinks> sinks() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const Sinks> sinks_ = std::make_shared<Sinks>();
};

}  // namespace hpqf::observe
