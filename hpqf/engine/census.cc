#include "hpqf/engine/census.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "hpqf/engine/instrument.h"
#include "hpqf/engine/ops.h"

namespace hpqf::engine {
namespace {

thread_local int t_counted = 0;  // inside work the engine counts
thread_local int t_depth = 0;    // inside an op the census has seen

std::unordered_set<std::string>& counted_names() {
  static auto* names = new std::unordered_set<std::string>;
  return *names;
}

struct Tally {
  int64_t calls = 0, nanoseconds = 0;
};
using Tallies = std::unordered_map<std::string, Tally>;
std::mutex g_mutex;
// Of every census that runs. One callback serves them all: with two, each op would look like the inner part of itself.
std::vector<Tallies*> g_running;
at::CallbackHandle g_handle;

struct Started : at::ObserverContext {
  int64_t start = 0;         // 0: not an outermost uncounted op
  bool transparent = false;  // the engine's frame around an autograd node: what runs inside is what counts
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
  auto context = std::make_unique<Started>();
  context->transparent = std::string_view(fn.name()).starts_with("autograd::");
  if (context->transparent) return context;
  if (t_depth++ == 0 && t_counted == 0) context->start = now_ns();
  return context;
}

void on_end(const at::RecordFunction& fn, at::ObserverContext* context) {
  const auto* started = static_cast<Started*>(context);
  if (!started || started->transparent) return;
  --t_depth;
  if (started->start == 0) return;
  const int64_t elapsed = now_ns() - started->start;
  const std::string name = fn.name();
  if (counted_names().contains(name)) return;
  std::lock_guard lock(g_mutex);
  for (Tallies* tallies : g_running) {
    Tally& tally = (*tallies)[name];
    ++tally.calls;
    tally.nanoseconds += elapsed;
  }
}

}  // namespace

void enter_counted() { ++t_counted; }
void leave_counted() { --t_counted; }

void note_counted_op(std::string name) { counted_names().insert(std::move(name)); }

struct OpCensus::Impl {
  Tallies tallies;
  int64_t start = now_ns();
  bool running = true;

  void stop() {
    running = false;
    const std::lock_guard lock(g_mutex);
    std::erase(g_running, &tallies);
    if (g_running.empty()) at::removeCallback(g_handle);
  }
};

OpCensus::OpCensus() : impl_(std::make_unique<Impl>()) {
  t_counted = 0;  // a node that threw between its hooks has left its mark, and nothing of ours runs on this thread now
  const std::lock_guard lock(g_mutex);
  if (g_running.empty())
    g_handle = at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end).scopes({at::RecordScope::FUNCTION}));
  g_running.push_back(&impl_->tallies);
}

std::vector<observe::UncountedOp> OpCensus::finish() {
  std::vector<observe::UncountedOp> ops;
  if (!impl_->running) return ops;
  impl_->stop();
  const double total = double(std::max<int64_t>(now_ns() - impl_->start, 1));
  for (auto& [name, tally] : impl_->tallies) ops.push_back({name, double(tally.nanoseconds) / total, tally.calls});
  std::ranges::sort(ops, [](auto& a, auto& b) { return a.share_of_time > b.share_of_time; });
  return ops;
}

OpCensus::~OpCensus() {
  if (impl_->running) impl_->stop();
}

}  // namespace hpqf::engine
