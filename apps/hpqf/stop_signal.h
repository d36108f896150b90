// SIGINT and SIGTERM end training after the step in progress; a second one kills as usual.
#pragma once
#include <csignal>

namespace hpqf {
class MixedPrecisionTrainer;
}

namespace hpqf::app {

// One at a time.
class StopSignal {
 public:
  explicit StopSignal(MixedPrecisionTrainer& trainer);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  static int received();  // the signal, 0 if none came

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace hpqf::app
