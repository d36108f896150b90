// Sends each event to the trainer's audit and to the sink the user gave.
#pragma once
#include <atomic>
#include <memory>

#include "hpqf/observe/audit.h"

namespace hpqf::train {

class TeeSink : public observe::EventSink {
 public:
  observe::Audit audit;
  std::shared_ptr<observe::EventSink> user;  // may be null; set before the first event

  void on_op(const observe::OpEvent& event) override {
    if (auditing_.load(std::memory_order_relaxed)) audit.on_op(event);
    if (user) user->on_op(event);
  }
  void on_cast(const observe::CastEvent& event) override {
    if (auditing_.load(std::memory_order_relaxed)) audit.on_cast(event);
    if (user) user->on_cast(event);
  }

  // The audit hears nothing while it lives.
  class Pause {
   public:
    explicit Pause(TeeSink& sink) : sink_(sink), previous_(sink.auditing_.exchange(false)) {}
    ~Pause() { sink_.auditing_ = previous_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    TeeSink& sink_;
    bool previous_;
  };

 private:
  std::atomic<bool> auditing_{true};
};

}  // namespace hpqf::train
