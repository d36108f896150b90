#include "apps/hpqf/stop_signal.h"

#include <unistd.h>

#include <atomic>

#include "hpqf/train/trainer.h"

namespace hpqf::app {
namespace {

std::atomic<MixedPrecisionTrainer*> g_trainer{nullptr};
std::atomic<int> g_received{0};
static_assert(std::atomic<MixedPrecisionTrainer*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  g_received = signal;
  if (MixedPrecisionTrainer* trainer = g_trainer) trainer->request_stop();
  constexpr char kText[] = "\nhpqf: stopping after this step; once more to stop at once\n";
  // Nothing can be done about a stderr that takes no text.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

StopSignal::StopSignal(MixedPrecisionTrainer& trainer) {
  g_received = 0;
  g_trainer = &trainer;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

StopSignal::~StopSignal() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  g_trainer = nullptr;
}

int StopSignal::received() { return g_received; }

}  // namespace hpqf::app
